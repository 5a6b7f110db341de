import { WeirError } from '@weir/core'

/** What the tools of this package take from the environment. */
export function readToolSettings(): { readonly databaseUrl: string } {
  const databaseUrl = process.env['DATABASE_URL']
  if (databaseUrl !== undefined && databaseUrl !== '') return { databaseUrl }
  throw new WeirError('config_invalid', 'DATABASE_URL is not set: set it to the URL of a Postgres administrator')
}
