import { reason } from '../case.ts'
import { pass, type Gate } from './gate.ts'

/** Older versions are refused by the ledger, in the statement that stores the verdict; here only what cannot be compared is told. */
export const version: Gate = {
  name: 'version',
  judge: ({ case: { item, version: compared } }) => {
    const { version: text } = item.event
    if (text === null || compared !== null) return pass
    const detail = 'the version is neither a number nor an RFC 3339 time, so it was not compared'
    return { kind: 'pass', reasons: [reason('version', 'not_comparable', detail)] }
  },
}
