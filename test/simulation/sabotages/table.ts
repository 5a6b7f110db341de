import { dedup } from './dedup.ts'
import { ownership } from './ownership.ts'
import { policy } from './policy.ts'
import type { Sabotage } from './sabotage.ts'

export const sabotages: readonly Sabotage[] = [...ownership, ...dedup, ...policy]
