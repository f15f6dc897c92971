import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRequest } from 'runwright/agent'

// Before the library is loaded, which asks once.
process.env['NODE_ENV'] = 'production'
const { openEngine, runToEnd, testProvider } = await import('../../helpers/engine.js')

const listing = { calls: [{ tool: 'list_files', args: { path: '.' } }] }

test('with NODE_ENV=production requests are snapshots that are not frozen', async (t) => {
  const kept: ModelRequest[] = []
  const providers = [
    testProvider((request, n) => {
      kept.push(request)
      return n < 2 ? listing : { stop: 'refusal' }
    }),
  ]
  const { engine } = await openEngine(t, { providers })
  await runToEnd(engine, { goal: 'shell: false' })
  assert.deepEqual(kept.map(({ messages }) => messages.length), [1, 3, 5])
  const parts = kept.flatMap(({ messages }) => [messages, ...messages])
  assert.ok(!parts.some((part) => Object.isFrozen(part)))
})
