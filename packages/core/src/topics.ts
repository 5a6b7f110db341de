/** Names of all topics of one installation. The prefix keeps installations (and tests) on one broker apart. */
export interface TopicNames {
  readonly raw: string
  readonly receipts: string
  readonly dedupState: string
  readonly events: string
  readonly decisions: string
  readonly released: string
  readonly outcomes: string
  readonly actions: string
  readonly parked: string
  readonly control: string
  /** Prefix of all agents' topics; the agent's name follows. */
  readonly agentPrefix: string
}

export function topicNames(prefix = 'weir.'): TopicNames {
  return {
    raw: `${prefix}raw`,
    receipts: `${prefix}receipts`,
    dedupState: `${prefix}dedup-state`,
    events: `${prefix}events`,
    decisions: `${prefix}decisions`,
    released: `${prefix}released`,
    outcomes: `${prefix}outcomes`,
    actions: `${prefix}actions`,
    parked: `${prefix}parked`,
    control: `${prefix}control`,
    agentPrefix: `${prefix}agent.`,
  }
}

/** Topic of one agent. Agent names are checked by the configuration: `[a-z0-9-]{1,64}`. */
export function agentTopic(topics: TopicNames, agent: string): string {
  return topics.agentPrefix + agent
}

/** Names of the headers of parked records; the original key, value and headers stay untouched beside them. */
export const parkedHeaders = {
  reason: 'weir-parked-reason',
  detail: 'weir-parked-detail',
  stage: 'weir-parked-stage',
  topic: 'weir-parked-topic',
  logId: 'weir-parked-log-id',
  partition: 'weir-parked-partition',
  offset: 'weir-parked-offset',
  timestampMs: 'weir-parked-timestamp-ms',
  /** Of one delivery: its agent and decision. */
  agent: 'weir-parked-agent',
  decisionId: 'weir-parked-decision-id',
} as const
