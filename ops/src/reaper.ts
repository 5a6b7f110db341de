// Nothing is left behind, however the parent ends (SIGKILL included): a shell holds the other end of a pipe that only the parent has
// open, and kills what it was told of when the pipe closes. Linux' PR_SET_PDEATHSIG would do less: it follows a thread, and
// nothing else has it.
import { spawn, type ChildProcess } from 'node:child_process'
import type { Writable } from 'node:stream'

const script = `
pids=
while read -r verb pid; do
  case $verb in
    watch) pids="$pids $pid" ;;
    forget) rest=; for p in $pids; do [ "$p" = "$pid" ] || rest="$rest $p"; done; pids=$rest ;;
    release) exit 0 ;;
  esac
done
for p in $pids; do kill -s KILL -- "-$p"; done
`

export class Reaper {
  #shell: { readonly process: ChildProcess; readonly pipe: Writable } | null = null

  /** Kills the child's whole process group when this process ends. The child must lead a group (`detached`). */
  watch(child: ChildProcess): void {
    const { pid } = child
    if (pid === undefined) return
    this.#say(`watch ${pid}`)
    child.once('exit', () => this.#say(`forget ${pid}`))
  }

  /** Lets everything live on. */
  release(): void {
    this.#say('release')
    this.#shell?.pipe.end()
    this.#shell = null
  }

  #say(line: string): void {
    this.#shell ??= startShell()
    if (this.#shell.pipe.writable) this.#shell.pipe.write(`${line}\n`)
  }
}

function startShell(): { process: ChildProcess; pipe: Writable } {
  // In a group of its own, or a Ctrl-C in the terminal would end it before the parent.
  const shell = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  const pipe = shell.stdin
  if (pipe === null) throw new TypeError('a piped child has a standard input')
  // Without it (it was killed), children end as they did before: by the supervisor, or at the next start.
  pipe.on('error', () => undefined)
  shell.on('error', () => undefined)
  shell.unref()
  // The pipe must not keep this process alive.
  if ('unref' in pipe && typeof pipe.unref === 'function') pipe.unref()
  return { process: shell, pipe }
}
