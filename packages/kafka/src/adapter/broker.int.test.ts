import { describeBroker, type LosablePoint } from '../../../../test/contracts/broker.ts'
import { brokers, silentLog } from '../testing/dev-stack.ts'
import { apiKey, createFaultySockets } from '../testing/faulty-sockets.ts'
import { openRealCluster } from '../testing/real-cluster.ts'
import { connectKafkajsBroker } from './connect-broker.ts'

const keyOf: Record<LosablePoint, number> = {
  publish: apiKey.produce,
  offsets: apiKey.txnOffsetCommit,
  commit: apiKey.endTxn,
}

describeBroker('kafkajs', async () => {
  const cluster = await openRealCluster()
  return {
    ...cluster,
    connect: () => {
      const sockets = createFaultySockets()
      const options = { brokers: brokers(), clientId: 'weir-test', log: silentLog }
      const broker = connectKafkajsBroker(options, { socketFactory: sockets.factory })
      return Promise.resolve({ broker, loseAnswer: at => sockets.lose(keyOf[at], 1) })
    },
  }
})
