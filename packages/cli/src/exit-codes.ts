/** Exit codes of every command; README.md lists them. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, prerequisite: 3, interrupted: 130, terminated: 143 } as const
