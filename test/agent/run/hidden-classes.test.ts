import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { MemoryStore, type RunRecord } from 'runwright/agent'

import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

setFlagsFromString('--allow-natives-syntax')
const haveSameClass = runInNewContext('(a, b) => %HaveSameMap(a, b)') as (
  a: object,
  b: object,
) => boolean

test('stored payloads of a kind share hidden classes: memory does not grow by one each', async (t) => {
  const store = new MemoryStore()
  const records: RunRecord[] = []
  const append = store.append.bind(store)
  store.append = async (runId, batch) => {
    records.push(...batch)
    await append(runId, batch)
  }
  const providers = [testProvider(() => ({ text: 'nothing to do' }))]
  const { engine } = await openEngine(t, { store, providers, detectStuck: false })
  await runToEnd(engine, { goal: 'shell: false', max_iterations: 12 })

  for (const kind of ['llm_usage', 'model_turn', 'iteration_complete']) {
    const payloads = records.filter((record) => record.kind === kind).map(({ payload }) => payload)
    const shared = payloads.filter((payload, i) => haveSameClass(payload, payloads[i - 1] ?? {}))
    assert.equal(payloads.length, 12, kind)
    assert.ok(shared.length >= 9, `${kind}: ${shared.length} share the class of the one before`)
  }
})
