// Writes schema.sql: migrates a database made for this run on the server of DATABASE_URL and dumps it.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import type { Log } from '@weir/core'
import { dumpSchema, migrate, openDatabase } from '../src/index.ts'
import { readToolSettings } from './config.ts'

const quiet: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet }
const server = readToolSettings().databaseUrl
const name = `weir_dump_${randomBytes(6).toString('hex')}`
const admin = openDatabase({ url: server, applicationName: 'weir dump', maxConnections: 1 })
const url = new URL(server)
url.pathname = `/${name}`
await admin.query(`create database ${name}`)
try {
  await migrate({ adminUrl: url.href, log: quiet })
  await writeFile(new URL('../schema.sql', import.meta.url), await dumpSchema(url.href))
} finally {
  await admin.query(`drop database ${name} with (force)`)
  await admin.close()
}
