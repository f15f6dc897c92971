import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from 'runwright/agent'
import {
  estimateConversation,
  estimateTokens,
  fitContext,
} from '../../../lib/agent/conversation/fit.js'
import { size, conversation, total, filled } from './sample-conversations.js'

function assertPaired(messages: readonly Message[]): void {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === 'tool')
      assert.ok(open.delete(message.call_id), `a result without its call: ${message.call_id}`)
    else assert.equal(open.size, 0, 'a call without its result')
    if (message.role === 'assistant') for (const { call_id } of message.calls) open.add(call_id)
  }
  assert.equal(open.size, 0)
}

test('a conversation that fits is returned as the same list', () => {
  const messages = conversation(5)
  const fitted = fitContext(messages, 10_000, size)
  assert.ok(fitted.fits)
  assert.equal(fitted.messages, messages)
  assert.deepEqual([fitted.masked, fitted.dropped], [0, 0])
})

test('old outputs are masked before anything is dropped, but never the last turn', () => {
  const messages = conversation(20)
  const fitted = fitContext(messages, 15_000, size)
  assert.ok(fitted.fits)
  assert.equal(fitted.dropped, 0)
  assert.equal(fitted.messages.length, messages.length)
  assert.equal(fitted.masked, 8)
  assert.match(
    (fitted.messages[2] as { output: string }).output,
    /^\[1000 characters left out/,
  )
  assert.deepEqual(fitted.messages.slice(17), messages.slice(17))
  assertPaired(fitted.messages)
})

test('if masking is not enough, the oldest turns are dropped with their results', () => {
  const messages = conversation(60)
  const fitted = fitContext(messages, 6_000, size)
  assert.ok(fitted.fits)
  assert.ok(fitted.dropped > 0)
  assert.equal(fitted.messages[0], messages[0])
  assert.match((fitted.messages[1] as { text: string }).text, /left out/)
  assert.deepEqual(fitted.messages.slice(-2), messages.slice(-2))
  assertPaired(fitted.messages)
})

test('the beginning is the same for most turns, for the prompt cache', () => {
  const whole = conversation(80)
  let same = 0
  let before: readonly Message[] = []
  for (let turns = 20; turns <= 80; turns++) {
    const fitted = fitContext(whole.slice(0, 1 + 2 * turns), 12_000, size)
    assert.ok(fitted.fits)
    const shared = fitted.messages.findIndex(
      (message, i) => JSON.stringify(message) !== JSON.stringify(before[i]),
    )
    if (shared >= before.length - 2) same++
    before = fitted.messages
  }
  assert.ok(same >= 45, `only ${same} of 61 calls kept the beginning`)
})

test('a conversation that cannot fit is reported with the tokens that it needs', () => {
  const messages: Message[] = conversation(30, 5_000)
  messages.push({ role: 'assistant', text: 'x'.repeat(5_000), calls: [] })
  const fitted = fitContext(messages, 4_000, size)
  assert.ok(!fitted.fits)
  assert.ok(fitted.neededTokens >= 5_100 && fitted.neededTokens < 5_300)
  const outputs = fitContext(conversation(30, 5_000), 1_000, size)
  assert.ok(!outputs.fits && outputs.neededTokens > 1_000 && outputs.neededTokens < 1_600)
  assert.ok(fitContext(conversation(30, 5_000), outputs.neededTokens, size).fits)
  assert.deepEqual(fitContext([{ role: 'user', text: 'x'.repeat(50) }], 10, size).fits, false)
})

test('messages from the last turn on stay as they are', () => {
  const messages = [...conversation(30), { role: 'user' as const, text: 'A human says: hurry.' }]
  const fitted = fitContext(messages, 4_000, size)
  assert.ok(fitted.fits)
  assert.deepEqual(fitted.messages.slice(-3), messages.slice(-3))
})

test('outputs of the last turn that leave no room are cut, the longest ones, for one call', () => {
  const messages: Message[] = conversation(30)
  messages.push(...conversation(1).slice(1, 2))
  const output = `first ${'é'.repeat(20_000)} last`
  const ids = ['call_long', 'call_short']
  const [long, short] = ids.map((call_id, i) => {
    return { role: 'tool' as const, call_id, tool: 'bash', output: i === 0 ? output : 'ok', exit_code: 0 }
  })
  messages.push(long!, short!)
  const fitted = fitContext(messages, 6_000, size)
  assert.ok(fitted.fits)
  assert.ok(total(fitted.messages) <= 6_000 && total(fitted.messages) > 4_000)
  assert.deepEqual(fitted.messages.slice(0, 1), messages.slice(0, 1))
  assert.equal(fitted.messages.at(-1), short)
  const cut = fitted.messages.at(-2)
  assert.ok(cut?.role === 'tool')
  assert.match(cut.output, /^first é+\n\[… \d+ characters left out here; .* …\]\né+ last$/)
  assert.equal(fitted.rest.at(-2), long, 'what is kept of it is whole')
})

test('a summary and what stays with it are dropped last', () => {
  const messages: Message[] = conversation(12, 3_000)
  const pins = ['[Summary of 5 turns]', 'Message from the user:\n\nhurry', 'Your plan'].map(
    (text, i) => {
      return { role: 'user' as const, text: text.padEnd(300), ...(i === 0 && { stands_for: 5 }) }
    },
  )
  messages.splice(1, 0, ...pins)
  for (let budget = 1_200; budget < 12_000; budget += 37) {
    const fitted = fitContext(messages, budget, size)
    const most = total([messages[0]!, ...pins]) + 50 + 1_400
    if (!fitted.fits || budget < most) continue
    assert.deepEqual(fitted.messages.slice(0, 4), messages.slice(0, 4), `${budget}`)
    assert.ok(total(fitted.messages) <= budget)
    assertPaired(fitted.messages)
    assert.deepEqual(fitted.rest.slice(0, 4), messages.slice(0, 4))
    assert.equal(fitted.rest.at(-1), messages.at(-1))
  }
  const small = fitContext(messages, 1_400, size)
  assert.ok(small.fits, 'without them, if it must be')
})

test('any conversation and budget: pairs stay whole, the goal stays, and the budget holds', () => {
  let state = 7
  const random = (below: number): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return Math.floor((state / 4_294_967_296) * below)
  }
  let cut = 0
  for (let round = 0; round < 300; round++) {
    const messages: Message[] = [{ role: 'user', text: 'goal' }]
    for (let turn = 0, turns = random(40); turn < turns; turn++) {
      if (random(4) === 0) messages.push({ role: 'user', text: 'f'.repeat(random(500)) })
      const calls = Array.from({ length: random(4) }, (_, i) => ({
        call_id: `c${turn}_${i}`,
        tool: 't',
        args: {},
      }))
      messages.push({ role: 'assistant', text: 't'.repeat(random(300)), calls })
      for (const { call_id } of calls) {
        messages.push({
          role: 'tool',
          call_id,
          tool: 't',
          output: 'o'.repeat(random(random(8) === 0 ? 20_000 : 2_000)),
          exit_code: 0,
        })
      }
    }
    const budget = random(20_000)
    const fitted = fitContext(messages, budget, size)
    if (!fitted.fits) {
      assert.ok(fitted.neededTokens > budget)
      continue
    }
    assertPaired(fitted.messages)
    assert.ok(total(fitted.messages) <= budget)
    assert.equal(fitted.messages[0], messages[0])
    const [last, whole] = [fitted.messages.at(-1), messages.at(-1)]
    if (last === whole) continue
    assert.ok(last?.role === 'tool' && whole?.role === 'tool')
    assert.match(last.output, /^o{400,}\n\[… \d+ characters left out here; .* …\]\no{400,}$/)
    cut += 1
  }
  assert.ok(cut > 5, `${cut} outputs were cut`)
})

test('estimates count text, arguments and a provider’s own parts', () => {
  assert.equal(estimateTokens({ role: 'user', text: 'x'.repeat(300) }), 108)
  const call = { call_id: 'c', tool: 'bash', args: { command: 'x'.repeat(300) } }
  assert.ok(estimateTokens({ role: 'assistant', text: '', calls: [call] }) > 100)
  const parts = { format: 'anthropic', value: [{ type: 'thinking', thinking: 'x'.repeat(3_000) }] }
  assert.ok(estimateTokens({ role: 'assistant', text: 'short', calls: [], parts }) > 1_000)
})

test('a conversation fits by the estimates of all its messages, however it has grown', () => {
  const messages = conversation(3)
  const kept = filled(messages)
  assert.equal(estimateConversation(messages), total(messages, estimateTokens))
  assert.deepEqual(kept.fit(estimateConversation(messages)), fitContext(messages, Infinity))
  const more = conversation(2).slice(1)
  for (const message of more) kept.add(message)
  const budget = estimateConversation([...messages, ...more])
  assert.deepEqual(kept.fit(budget), fitContext([...messages, ...more], budget))
  assert.deepEqual(kept.fit(budget - 1), fitContext([...messages, ...more], budget - 1))
})
