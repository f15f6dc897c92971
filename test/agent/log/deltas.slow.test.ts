import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, type DeltaPayload } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { openEngine } from '../../helpers/engine.js'
import { deltaOf } from './parse-delta.js'

test("a run streams its model's text, and numbers the attempts", async (t) => {
  const failing = { ok: false }
  const model = new ScriptedModel([
    (request) => {
      if (failing.ok) return { text: 'second' }
      failing.ok = true
      request.onDelta?.('first, in part')
      throw new ModelError('ERR_AGENT_MODEL', 'cut off', { retryable: true, retryAfterMs: 0 })
    },
  ])
  const { engine } = await openEngine(t, {
    providers: [
      {
        id: 'test',
        description: 'a test',
        isLanguageModel: false,
        suggestions: [],
        create: () => model,
      },
    ],
    defaultModel: 'test:it',
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  const seen: [string, DeltaPayload?][] = []
  for await (const items of await engine.subscribe(details.run_id, { deltas: true })) {
    for (const item of items) {
      seen.push(item.seq === null ? [item.kind, deltaOf(item).payload] : [item.kind])
    }
  }
  assert.deepEqual(seen.filter(([kind]) => /model/.test(kind)), [
    ['model_delta', { turn: 1, attempt: 1, offset: 0, text: 'first, in part' }],
    ['model_delta', { turn: 1, attempt: 2, offset: 0, text: 'second' }],
    ['model_turn'],
  ])
  const stored = await engine.events(details.run_id, { after: 0, limit: 100 })
  assert.ok(stored.every(({ kind }) => (kind as string) !== 'model_delta'))
})
