export type { BrokerOptions } from './adapter/broker-options.ts'
export { connectBroker } from './adapter/connect-broker.ts'
