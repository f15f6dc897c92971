import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRequest } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { judgeProvider } from '../../helpers/judge.js'

const listing = { calls: [{ tool: 'list_files', args: { path: '.' } }] }

test('a model that keeps its requests sees in each what it was sent, and cannot change it', async (t) => {
  const kept: ModelRequest[] = []
  const lengths: number[] = []
  const providers = [
    testProvider((request, n) => {
      kept.push(request)
      lengths.push(request.messages.length)
      return n < 3 ? listing : { stop: 'refusal' }
    }),
  ]
  const { engine } = await openEngine(t, { providers })
  await runToEnd(engine, { goal: 'shell: false' })

  assert.deepEqual(lengths, [1, 3, 5, 7])
  assert.deepEqual(kept.map(({ messages }) => messages.length), lengths)
  const last = kept.at(-1)!
  const call = last.messages.find((message) => message.role === 'assistant')!.calls[0]!
  const parts: readonly object[] = [
    last, last.messages, last.messages[0]!, call, call.args, last.tools, last.tools[0]!.parameters,
    last.run,
  ]
  assert.deepEqual(parts.map((part) => Object.isFrozen(part)), parts.map(() => true))
  assert.ok(!Object.isFrozen(last.signal))
})

test('the judge gets frozen requests as well', async (t) => {
  const { provider, asked } = judgeProvider(() => ({ achieved: true, reason: 'It is there.' }))
  const write = { calls: [{ tool: 'write_file', args: { path: 'a', content: 'b' } }] }
  const worker = testProvider((_, n) => (n === 0 ? write : {}))
  const { engine } = await openEngine(t, { providers: [worker, provider], judgeModel: 'judge:j' })
  await runToEnd(engine, { goal: 'Write a file.', max_iterations: 1 })
  assert.equal(asked.length, 1)
  assert.ok(Object.isFrozen(asked[0]!.messages) && Object.isFrozen(asked[0]!.messages[0]))
})
