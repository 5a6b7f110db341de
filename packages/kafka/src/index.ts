export type { BrokerOptions } from './adapter/broker-options.ts'
export { connectBroker } from './adapter/connect-broker.ts'
export { ensureTopics, type EnsureTopicsOptions } from './adapter/ensure-topics.ts'
export { topicSpecs, type TopicSpec, type TopicSpecOptions } from './topic-specs.ts'
