/** A store of contents that never answers holds up nobody for ever. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type ObjectStore, type RunEngine } from 'runwright/agent'
import { follow, openEngine, scratch, testProvider } from '../../helpers/engine.js'

const METHODS = ['put', 'has', 'get'] as const

interface Silent {
  readonly engine: RunEngine
  readonly runId: string
  /** Makes the store silent, or resolves once a call of it is waiting. */
  readonly silence: () => void
  readonly asked: Promise<void>
}

async function silentRun(
  t: TestContext,
  method: (typeof METHODS)[number],
  from: 'start' | 'later',
): Promise<Silent> {
  const store = new MemoryStore()
  await store.open()
  const real = store.objects
  let isSilent = from === 'start'
  let onAsked: () => void = () => undefined
  const asked = new Promise<void>((resolve) => (onAsked = resolve))
  const answer = <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (!isSilent || name !== method) return work()
    onAsked()
    return new Promise<T>(() => undefined)
  }
  const objects: ObjectStore = {
    exclusive: true,
    put: (blobs) => answer('put', () => real.put(blobs)),
    has: (hashes) => answer('has', () => real.has(hashes)),
    get: (hash) => answer('get', () => real.get(hash)),
    list: (after, limit) => real.list(after, limit),
    delete: (hashes, ms) => real.delete(hashes, ms),
  }
  const call = { tool: 'bash', args: { command: 'date +%N > goal.txt' } }
  const provider = testProvider((_, number) => (number === 0 ? { calls: [call] } : { text: 'x' }))
  const { engine } = await openEngine(t, {
    cwd: scratch(t), store, objects, providers: [provider], checkpoints: 'auto',
  })
  const request = { goal: 'shell: test -f goal.txt', max_iterations: 1 }
  const { details } = await engine.create(request)
  return { engine, runId: details.run_id, silence: () => (isSilent = true), asked }
}

for (const method of ['put', 'has'] as const) {
  test(`a run whose store of contents never answers to ${method} can be aborted`, async (t) => {
    const { engine, runId, asked } = await silentRun(t, method, 'start')
    await asked
    await engine.abort(runId)
    const events = await follow(engine, runId)
    assert.equal(events.at(-1)?.kind, 'run_end')
    assert.equal((await engine.get(runId)).status, 'aborted')
  })
}

test('a run that compares checkpoints, and gets no content, can be aborted', async (t) => {
  const { engine, runId, asked } = await silentRun(t, 'get', 'start')
  await asked
  await engine.abort(runId)
  await follow(engine, runId)
  assert.equal((await engine.get(runId)).status, 'aborted')
})

for (const method of METHODS) {
  test(`an engine whose store of contents never answers to ${method} can be closed`, async (t) => {
    const { engine, asked } = await silentRun(t, method, 'start')
    await asked
    await engine.close()
  })
}

test('who reads contents that never come gets an error when the engine closes', async (t) => {
  const { engine, runId, silence, asked } = await silentRun(t, 'get', 'later')
  await follow(engine, runId)
  silence()
  const reading = assert.rejects(engine.workspaces.changes(runId, {}), /clos/)
  await asked
  await engine.close()
  await reading
})
