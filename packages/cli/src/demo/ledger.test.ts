import { describe, expect, it } from 'vitest'
import { balance, type Book, type Delivered } from './ledger.ts'

const book: Book = {
  expected: [
    { key: 'a', name: 'event a', agents: ['one', 'two'] },
    { key: 'b', name: 'event b', agents: ['one'] },
    { key: 'c', name: 'event c', agents: ['one'] },
  ],
  choices: [{ name: 'order 7', agent: 'one', keys: ['b', 'c'], exactly: 1 }],
  orders: [['a', 'b']],
}
const at = (agent: string, key: string): Delivered => ({ agent, key, orderingKey: 'o' })
const right = [at('one', 'a'), at('two', 'a'), at('one', 'b')]

describe('the ledger', () => {
  it('balances when everything arrived once, in order', () => {
    expect(balance(book, right)).toEqual({ lost: [], doubled: [], unexpected: [], reordered: [] })
  })

  it('finds a lost delivery to one of two agents', () => {
    expect(balance(book, [at('one', 'a'), at('one', 'b')]).lost).toEqual(['event a did not reach two'])
  })

  it('finds a doubled delivery', () => {
    expect(balance(book, [...right, at('two', 'a')]).doubled).toEqual(['two a: 2 times'])
  })

  it('finds a business action that arrived twice, and one that never did', () => {
    expect(balance(book, [...right, at('one', 'c')]).doubled).toEqual(['order 7: 2 instead of 1 reached one'])
    expect(balance(book, right.slice(0, 2)).lost).toEqual(['order 7: 0 of 1 reached one'])
  })

  it('finds what nobody expected', () => {
    expect(balance(book, [...right, at('two', 'b')]).unexpected).toEqual(['two b'])
  })

  it('finds an event that was overtaken', () => {
    expect(balance(book, [at('one', 'b'), at('one', 'a'), at('two', 'a')]).reordered).toEqual(['a was overtaken in o'])
  })
})
