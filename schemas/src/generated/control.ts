// Made from avro/control.avsc by tools/generate.ts; do not edit.

/** A kill switch or a configuration version in force. */
export interface Control {
  /** global, or tenant:, agent:, run:, destination:, tool: and a name. */
  readonly scope: string
  /** kill_switch or config_version. */
  readonly kind: string
  /** Whether it is on. */
  readonly active: boolean
  /** SHA-256 of the rules, hex; empty for a switch. */
  readonly configVersion: string
  /** Why, in one sentence. */
  readonly reason: string
  /** Who. */
  readonly actor: string
  /** When. */
  readonly atMs: number
}

export const controlSchema = {"type":"record","name":"Control","namespace":"dev.weir","doc":"A kill switch or a configuration version in force.","fields":[{"name":"scope","type":"string","doc":"global, or tenant:, agent:, run:, destination:, tool: and a name."},{"name":"kind","type":"string","doc":"kill_switch or config_version."},{"name":"active","type":"boolean","doc":"Whether it is on."},{"name":"configVersion","type":"string","doc":"SHA-256 of the rules, hex; empty for a switch.","default":""},{"name":"reason","type":"string","doc":"Why, in one sentence."},{"name":"actor","type":"string","doc":"Who."},{"name":"atMs","type":"long","doc":"When."}]} as const
