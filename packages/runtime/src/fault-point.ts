import { WeirError } from '@weir/core'

/**
 * Points at which kill tests end the process with SIGKILL. `WEIR_FAULT_POINT=<name>[:<n>]` names one and the pass that kills
 * (default the first); it is refused unless `WEIR_ALLOW_FAULTS=1`, so that it cannot be left on by mistake.
 */
export function createFaultPoint(env: NodeJS.ProcessEnv): (name: string) => void {
  const wanted = env['WEIR_FAULT_POINT']
  if (wanted === undefined || wanted === '') return () => undefined
  if (env['WEIR_ALLOW_FAULTS'] !== '1') {
    throw new WeirError(
      'config_invalid',
      `WEIR_FAULT_POINT=${wanted} ends this process on purpose; it needs WEIR_ALLOW_FAULTS=1`,
    )
  }
  const [name = '', count = '1'] = wanted.split(':')
  let left = Number(count)
  if (!Number.isSafeInteger(left) || left < 1) {
    throw new WeirError('config_invalid', `WEIR_FAULT_POINT=${wanted}: write <name> or <name>:<n> with n of at least 1`)
  }
  return passed => {
    if (passed !== name) return
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
  }
}
