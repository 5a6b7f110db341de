import type { Assignment, Broker } from '@weir/core'
import { expect } from 'vitest'
import { sessionTimeoutMs, until, type Case } from './world.ts'

const ascending = (a: number, b: number) => a - b

/** Follows what a member is told. */
async function member(broker: Broker, group: string, topics: readonly string[]) {
  const assignments: Assignment[] = []
  const lost: unknown[] = []
  const membership = await broker.join({
    group,
    topics,
    sessionTimeoutMs,
    onAssigned: assignment => assignments.push(assignment),
    onLost: cause => lost.push(cause),
  })
  const numbers = () => assignments.at(-1)?.numbers ?? []
  return { membership, assignments, lost, numbers }
}

export const membership: readonly Case[] = [
  [
    'gives one member every number, and a second one half of them, without moving the others',
    async world => {
      const [a, b] = [await world.party(), await world.party()]
      const topics = [await world.topic('a'), await world.topic('b')]
      const group = `${world.name}.g`
      const first = await member(a.broker, group, topics)
      expect(first.numbers()).toEqual([0, 1, 2, 3])
      const second = await member(b.broker, group, topics)
      await until('both have two numbers', () => first.numbers().length === 2 && second.numbers().length === 2)
      expect([...first.numbers(), ...second.numbers()].toSorted(ascending)).toEqual([0, 1, 2, 3])
      expect(first.numbers()).toEqual([0, 1])
      expect(first.assignments.at(-1)?.generation).toBe(second.assignments.at(-1)?.generation)
      await Promise.all([first.membership.prove(), second.membership.prove()])
      await second.membership.leave()
      await until('the first has all again', () => first.numbers().length === 4)
      expect([first.lost, second.lost]).toEqual([[], []])
      await first.membership.leave()
    },
  ],
  [
    'keeps every number that can stay when members come and go',
    async world => {
      const topics = [await world.topic()]
      const group = `${world.name}.g`
      const members: Awaited<ReturnType<typeof member>>[] = []
      for (let i = 0; i < 3; i++) {
        members.push(await member((await world.party()).broker, group, topics))
        const all = () => members.flatMap(({ numbers }) => numbers()).toSorted(ascending)
        await until(`${i + 1} members share the numbers`, () => String(all()) === '0,1,2,3')
      }
      const before = members.map(({ numbers }) => numbers())
      expect(before.map(({ length }) => length).toSorted(ascending)).toEqual([1, 1, 2])
      const [, second, third] = members
      await second?.membership.leave()
      await until('the others have two each', () => members[0]?.numbers().length === 2 && third?.numbers().length === 2)
      expect(members[0]?.numbers()).toEqual(expect.arrayContaining([...(before[0] ?? [])]))
      expect(third?.numbers()).toEqual(expect.arrayContaining([...(before[2] ?? [])]))
      await Promise.all([members[0]?.membership.leave(), third?.membership.leave()])
    },
  ],
  [
    'cannot prove a membership it was thrown out of, and joins again by itself',
    async world => {
      const { broker } = await world.party()
      const topics = [await world.topic()]
      const group = `${world.name}.g`
      const only = await member(broker, group, topics)
      await only.membership.prove()
      await world.harness.evictMembers(group)
      await expect(only.membership.prove()).rejects.toMatchObject({ code: 'membership_lost', context: {} })
      await until('it has its numbers again', () => only.numbers().length === 4 && only.assignments.length >= 3)
      expect(only.assignments.map(({ numbers }) => numbers.length)).toEqual([4, 0, 4])
      await only.membership.prove()
      await only.membership.leave()
    },
  ],
]
