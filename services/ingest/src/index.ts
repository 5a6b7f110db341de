export { configSchema } from './config.ts'
export { providers } from './domain/providers/table.ts'
export type { Provider, SignRequest } from './domain/providers/scheme.ts'
