import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import type { NativeContext } from './native.ts'
import { findBinaries, isReachable, type User } from './postgres-binaries.ts'
import { step } from './progress.ts'
import { runCommand } from './run-command.ts'
import { accepts, waitUntil } from './wait.ts'

/** A Postgres server with a random password. Returns the administrator's URL. */
export async function startPostgres(context: NativeContext): Promise<string> {
  const { supervisor, progress, signal } = context
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  const folder = placeFor(context.stateDir, user)
  const bin = await findBinaries(folder, user)
  const data = join(folder, 'data')
  if (context.data === 'fresh') rmSync(data, { recursive: true, force: true })
  const passwordFile = join(context.stateDir, 'postgres-password')
  if (!existsSync(data)) await initialise({ bin, folder, user, passwordFile, signal })
  const password = readFileSync(passwordFile, 'utf8')
  const port = await context.ports.take('postgres')
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
    waitUntil(async () => saysReady(data) && (await accepts(port)), {
      what: 'Postgres',
      withinMs: 60_000,
      givenUp: () => supervisor.ended('postgres'),
      signal,
    }),
  )
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

/** The server writes its state into the eighth line of its pid file; while it recovers it already accepts connections. */
function saysReady(data: string): boolean {
  const file = join(data, 'postmaster.pid')
  return existsSync(file) && readFileSync(file, 'utf8').split('\n')[7]?.trim() === 'ready'
}

const serverSettings = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'shared_buffers=256MB',
  'synchronous_commit=on',
  'password_encryption=scram-sha-256',
]

interface Initialisation {
  readonly bin: string
  readonly folder: string
  readonly user: User | null
  readonly passwordFile: string
  readonly signal: AbortSignal
}

/** Makes the data folder aside and moves it into place: an interrupted one is made again. */
async function initialise({ bin, folder, user, passwordFile, signal }: Initialisation): Promise<void> {
  const password = randomBytes(18).toString('hex')
  rmSync(passwordFile, { force: true })
  writeFileSync(passwordFile, password, { mode: 0o600 })
  const aside = join(folder, 'data.new')
  rmSync(aside, { recursive: true, force: true })
  // The unprivileged user's own copy, for initdb.
  const pwfile = join(folder, 'password')
  rmSync(pwfile, { force: true })
  writeFileSync(pwfile, password, { mode: 0o600 })
  if (user !== null) chownSync(pwfile, user.uid, user.gid)
  const args = ['-D', aside, '-U', 'postgres', `--pwfile=${pwfile}`, '-A', 'scram-sha-256', '--no-sync']
  try {
    await runCommand(join(bin, 'initdb'), [...args, '--encoding=UTF8', '--locale=C'], { cwd: folder, signal, ...user })
  } finally {
    rmSync(pwfile, { force: true })
  }
  renameSync(aside, join(folder, 'data'))
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

/** The folder of a stack's Postgres: below the system's temporary folder when the unprivileged user cannot reach the stack's own. */
function folderOf(stateDir: string, user: User | null): string {
  if (user === null || isReachable(stateDir)) return join(stateDir, 'postgres')
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 12)
  return join(tmpdir(), `weir-postgres-${name}`)
}

function placeFor(stateDir: string, user: User | null): string {
  const folder = folderOf(stateDir, user)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { uid } = lstatSync(folder)
  // Its name can be known to anybody who may write to the temporary folder.
  if (!lstatSync(folder).isDirectory() || (uid !== process.getuid?.() && uid !== user?.uid)) {
    throw new WeirError('prerequisite_missing', `${folder} belongs to somebody else: remove it, or set DATABASE_URL`)
  }
  if (user !== null) {
    chownSync(folder, user.uid, user.gid)
    chmodSync(folder, 0o700)
  }
  return folder
}

/** Throws away what `startPostgres` keeps for a stack outside its folder. */
export function dropPostgres(stateDir: string): void {
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  rmSync(folderOf(stateDir, user), { recursive: true, force: true })
}
