export { prepare, ensureDatabase, dropDatabase, type PrepareOptions } from './prepare.ts'
export { localSecrets, makeSecrets, type LocalSecrets } from './secrets.ts'
export { System, serviceNames } from './system.ts'
export type { Instance, InstanceOptions, ServiceName, SystemOptions } from './system.ts'
