import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from 'runwright/agent'
import { Conversation } from '../../../lib/agent/conversation/conversation.js'
import { fitContext } from '../../../lib/agent/conversation/fit.js'
import { Random } from '../../helpers/random.js'
import { conversation, total, filled } from './sample-conversations.js'

/** One more turn, sometimes after a remark of a human. */
function nextTurn(random: Random, turn: number): Message[] {
  const calls = Array.from({ length: random.integer(0, 3) }, (_, i) => ({
    call_id: `c${turn}_${i}`,
    tool: 't',
    args: { text: 'a'.repeat(random.integer(0, 900)) },
  }))
  return [
    ...(random.chance(0.2)
      ? [{ role: 'user' as const, text: 'f'.repeat(random.integer(0, 900)) }]
      : []),
    { role: 'assistant', text: 't'.repeat(random.integer(0, 300)), calls },
    ...calls.map(({ call_id }): Message => ({
      role: 'tool',
      call_id,
      tool: 't',
      output: 'o'.repeat(random.integer(0, 6_000)),
      exit_code: 0,
    })),
  ]
}

test('a conversation that forgets unsent messages is sent exactly as the whole would be', () => {
  const random = new Random(11)
  let dropped = 0
  for (let round = 0; round < 60; round++) {
    const whole: Message[] = [{ role: 'user', text: 'goal' }]
    const kept = filled(whole)
    let budget = random.integer(2_000, 20_000)
    for (let turn = 0; turn < 60; turn++) {
      const more = nextTurn(random, turn)
      whole.push(...more)
      for (const message of more) kept.add(message)
      // The model has refused the fitted conversation.
      if (random.chance(0.02)) budget = Math.floor(budget * 0.6)
      const expected = fitContext(whole, budget)
      const fitted = kept.fit(budget)
      assert.equal(fitted.fits, expected.fits)
      if (!fitted.fits || !expected.fits) break
      assert.deepEqual(fitted.messages, expected.messages)
      dropped += fitted.dropped
    }
  }
  assert.ok(dropped > 0)
})

test('what is kept of a conversation depends on the budget, not on its length', () => {
  const kept = new Conversation()
  const sizes: number[] = []
  let rest: readonly Message[] = []
  for (const message of conversation(2_000, 3_000)) {
    kept.add(message)
    const fitted = kept.fit(20_000)
    assert.ok(fitted.fits)
    rest = fitted.rest
    sizes.push(total(rest))
  }
  // Three characters per token.
  assert.ok(Math.max(...sizes) < 3 * 20_000 + 10_000, `${Math.max(...sizes)} characters`)
  assert.ok(rest.length < 1_000, `${rest.length} messages`)
})
