import { describeBroker, type LosablePoint } from '../../../../test/contracts/broker.ts'
import type { FaultPoint } from './faults.ts'
import { createSimulatedBroker } from './simulated-broker.ts'
import { SimulatedCluster } from './simulated-cluster.ts'

const pointOf: Record<LosablePoint, FaultPoint> = { publish: 'publish', offsets: 'offsets', commit: 'commit' }

describeBroker('simulated', () => {
  const cluster = new SimulatedCluster()
  return {
    connect: () =>
      Promise.resolve({
        broker: createSimulatedBroker({ cluster }),
        loseAnswer: at => cluster.faults.strikeNext(pointOf[at], 'lost-answer'),
      }),
    createTopic: (topic, options) => Promise.resolve(cluster.createTopic({ topic, ...options })),
    deleteTopic: topic => Promise.resolve(cluster.deleteTopic(topic)),
    removeBelow: (tp, offset) => Promise.resolve(cluster.log(tp).removeBelow(offset)),
    evictMembers: group => {
      const members = cluster.group(group)
      for (const id of members.memberIds) members.evict(id)
      return Promise.resolve()
    },
    close: () => Promise.resolve(),
  }
})
