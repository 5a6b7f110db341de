import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { mavenArchive } from './maven.ts'
import type { NativeContext } from './native.ts'
import { step } from './progress.ts'
import { versions } from './versions.ts'
import { waitUntil } from './wait.ts'

/** Downloads the registry when it is not there. Returns its folder. */
export async function fetchRegistry(context: NativeContext): Promise<string> {
  const { toolsDir, signal, progress } = context
  const version = versions.apicurio
  const target = join(toolsDir, `apicurio-registry-${version}`)
  const download = { what: `Apicurio Registry ${version} (109 MB)`, target, signal, progress }
  const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
  return await mavenArchive(download, artifact, `apicurio-registry-app-${version}-all.tar.gz`)
}

/** Apicurio Registry with Confluent's API, its schemas in a database file. Returns its base URL. */
export async function startRegistry(context: NativeContext, folder: string): Promise<string> {
  const { supervisor, stateDir } = context
  const port = await context.ports.take('registry')
  const data = join(stateDir, 'registry')
  if (context.data === 'fresh') rmSync(data, { recursive: true, force: true })
  mkdirSync(data, { recursive: true })
  supervisor.start({
    name: 'registry',
    command: 'java',
    args: ['-Xmx256m', '-XX:+UseSerialGC', '-jar', `apicurio-registry-app-${versions.apicurio}-runner.jar`],
    cwd: folder,
    env: {
      QUARKUS_HTTP_PORT: String(port),
      QUARKUS_HTTP_HOST: '127.0.0.1',
      APICURIO_STORAGE_KIND: 'sql',
      APICURIO_STORAGE_SQL_KIND: 'h2',
      // Kafka's records refer to schemas by their ids: what it answers must be on disk.
      APICURIO_DATASOURCE_URL: `jdbc:h2:file:${join(data, 'schemas')};DB_CLOSE_ON_EXIT=FALSE;WRITE_DELAY=0`,
    },
  })
  const url = `http://127.0.0.1:${port}/apis/ccompat/v7`
  await step(context.progress, `starting Apicurio Registry ${versions.apicurio} on port ${port}`, () =>
    waitUntil(() => answersOk(`${url}/subjects`), {
      what: 'schema registry',
      withinMs: 120_000,
      givenUp: () => supervisor.ended('registry'),
      signal: context.signal,
    }),
  )
  return url
}

export async function answersOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
