import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { step, type Progress } from './progress.ts'
import { runCommand } from './run-command.ts'
import { versions } from './versions.ts'

const plugin = `org.apache.maven.plugins:maven-dependency-plugin:${versions.dependencyPlugin}`
/** Batch mode, quiet, and -C: an artifact whose checksum does not match fails the build. */
const flags = ['-B', '-q', '-C']

export interface Download {
  /** What it is, for progress. */
  readonly what: string
  /** Folder to fill; it exists only when it is complete. */
  readonly target: string
  readonly signal: AbortSignal
  readonly progress: Progress
}

/** All jars of these artifacts and of their dependencies. */
export async function mavenLibs(
  download: Download,
  dependencies: readonly (readonly [groupId: string, artifactId: string, version: string])[],
): Promise<string> {
  return await complete(download, async folder => {
    const pom = join(folder, 'pom.xml')
    writeFileSync(pom, pomOf(dependencies))
    const goal = [`${plugin}:copy-dependencies`, `-DoutputDirectory=${folder}`]
    await maven(['-f', pom, ...goal], download.signal)
  })
}

/** One archive of Maven Central, unpacked. `file` is its name there. */
export async function mavenArchive(download: Download, artifact: string, file: string): Promise<string> {
  const { signal } = download
  return await complete(download, async folder => {
    const pom = join(folder, 'pom.xml')
    writeFileSync(pom, pomOf([]))
    await maven(['-f', pom, `${plugin}:copy`, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`], signal)
    await runCommand('tar', ['-xzf', join(folder, file), '-C', folder], { signal })
    rmSync(join(folder, file))
  })
}

/** Twice, because two Mavens at once (another checkout's) can disturb each other in their common repository. */
async function maven(args: readonly string[], signal: AbortSignal): Promise<void> {
  try {
    await runCommand('mvn', [...flags, ...args], { signal })
  } catch {
    signal.throwIfAborted()
    await runCommand('mvn', [...flags, ...args], { signal })
  }
}

/** Fills a folder aside and moves it into place at the end: a run that was interrupted leaves nothing half done. */
async function complete(download: Download, fill: (folder: string) => Promise<void>): Promise<string> {
  const { target, what, progress } = download
  if (existsSync(target)) return target
  const aside = `${target}.${process.pid}`
  rmSync(aside, { recursive: true, force: true })
  mkdirSync(aside, { recursive: true })
  try {
    await step(progress, `getting ${what} (once for this checkout; Maven keeps the download)`, () => fill(aside))
    if (!existsSync(target)) renameSync(aside, target)
  } finally {
    rmSync(aside, { recursive: true, force: true })
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
