export { configSchema } from './config.ts'
export { DedupService, type DedupOptions } from './service.ts'
export { createClaimLedger } from './adapters/postgres-claim-ledger.ts'
export { createDedupCodec } from './adapters/codec.ts'
