import pg from 'pg'
import { connectionConfig } from './connection-options.ts'
import { toDatabaseError } from './database-error.ts'

/** Runs `work` on one connection of its own, with the administrator's rights, and closes it. Errors are converted. */
export async function withAdminClient<T>(
  options: { readonly adminUrl: string; readonly doing: string; readonly statementTimeoutMs?: number },
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(
    connectionConfig({
      url: options.adminUrl,
      applicationName: `weir ${options.doing}`,
      statementTimeoutMs: options.statementTimeoutMs ?? 120_000,
    }),
  )
  // A connection that breaks ends the process without a listener; the statement in flight reports the error.
  let lost: unknown = null
  client.on('error', error => {
    lost = error
  })
  try {
    await client.connect()
    return await work(client)
  } catch (error) {
    throw toDatabaseError(lost ?? error, options.doing)
  } finally {
    await client.end()
  }
}
