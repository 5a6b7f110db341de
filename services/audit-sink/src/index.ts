export { configSchema } from './config.ts'
