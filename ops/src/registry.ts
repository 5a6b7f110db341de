import { join } from 'node:path'
import { mavenArchive } from './maven.ts'
import type { NativeContext } from './native.ts'
import { step } from './progress.ts'
import { versions } from './versions.ts'
import { freePorts, waitUntil } from './wait.ts'

/** Downloads the registry when it is not there (about 109 MB). */
export async function fetchRegistry(context: NativeContext): Promise<string> {
  const version = versions.apicurio
  const target = join(context.toolsDir, `apicurio-registry-${version}`)
  const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
  return await mavenArchive(target, artifact, `apicurio-registry-app-${version}-all.tar.gz`, context.signal)
}

/** Apicurio Registry in memory, with Confluent's API. Returns its base URL. */
export async function startRegistry(context: NativeContext, folder: string): Promise<string> {
  const { supervisor } = context
  const [port = 0] = await freePorts(1)
  supervisor.start({
    name: 'registry',
    command: 'java',
    args: ['-Xmx256m', '-XX:+UseSerialGC', '-jar', `apicurio-registry-app-${versions.apicurio}-runner.jar`],
    cwd: folder,
    env: { QUARKUS_HTTP_PORT: String(port), QUARKUS_HTTP_HOST: '127.0.0.1' },
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
