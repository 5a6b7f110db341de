import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { WeirError } from '@weir/core'

const execute = promisify(execFile)

/** Runs a program to its end. Throws `prerequisite_missing` with what it printed. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: {
    readonly cwd?: string
    readonly uid?: number
    readonly gid?: number
    readonly env?: NodeJS.ProcessEnv
    readonly signal?: AbortSignal
  } = {},
): Promise<string> {
  try {
    const { stdout } = await execute(command, [...args], { maxBuffer: 16 * 1024 * 1024, ...options })
    return stdout
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-15).join('\n')
    throw new WeirError('prerequisite_missing', `\`${command} ${args.join(' ')}\` failed:\n${said}`, { cause: error })
  }
}

/** Whether a program answers at all. */
export async function answers(command: string, args: readonly string[]): Promise<boolean> {
  try {
    await execute(command, [...args], { timeout: 15_000 })
    return true
  } catch {
    return false
  }
}
