import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from './run-command.ts'
import { versions } from './versions.ts'

const plugin = `org.apache.maven.plugins:maven-dependency-plugin:${versions.dependencyPlugin}`
/** Batch mode, quiet, and -C: an artifact whose checksum does not match fails the build. */
const flags = ['-B', '-q', '-C']

/** All jars of one artifact and its dependencies, in a folder that exists only when it is complete. */
export async function mavenLibs(
  target: string,
  dependencies: readonly (readonly [groupId: string, artifactId: string, version: string])[],
  signal: AbortSignal,
): Promise<string> {
  return await complete(target, async folder => {
    const pom = join(folder, 'pom.xml')
    writeFileSync(pom, pomOf(dependencies))
    await runCommand('mvn', [...flags, '-f', pom, `${plugin}:copy-dependencies`, `-DoutputDirectory=${folder}`], {
      signal,
    })
  })
}

/** One archive of Maven Central, unpacked. */
export async function mavenArchive(
  target: string,
  artifact: string,
  file: string,
  signal: AbortSignal,
): Promise<string> {
  return await complete(target, async folder => {
    const pom = join(folder, 'pom.xml')
    writeFileSync(pom, pomOf([]))
    const args = [...flags, '-f', pom, `${plugin}:copy`, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`]
    await runCommand('mvn', args, { signal })
    await runCommand('tar', ['-xzf', join(folder, file), '-C', folder], { signal })
    rmSync(join(folder, file))
  })
}

/** Fills a folder aside and moves it into place at the end: a run that was interrupted leaves nothing half done. */
async function complete(target: string, fill: (folder: string) => Promise<void>): Promise<string> {
  if (existsSync(target)) return target
  const aside = `${target}.${process.pid}`
  rmSync(aside, { recursive: true, force: true })
  mkdirSync(aside, { recursive: true })
  try {
    await fill(aside)
    if (existsSync(target)) rmSync(aside, { recursive: true })
    else renameSync(aside, target)
  } catch (error) {
    rmSync(aside, { recursive: true, force: true })
    throw error
  }
  return target
}

function pomOf(dependencies: readonly (readonly [string, string, string])[]): string {
  const list = dependencies
    .map(
      ([g, a, v]) =>
        `<dependency><groupId>${g}</groupId><artifactId>${a}</artifactId><version>${v}</version></dependency>`,
    )
    .join('')
  return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>dev.weir</groupId><artifactId>local-stack</artifactId><version>1</version><dependencies>${list}</dependencies></project>\n`
}
