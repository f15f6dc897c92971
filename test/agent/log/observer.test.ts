import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type AgentEvent, type RunRecord } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

test('an observer gets every event once, in order, as subscribers do', async (t) => {
  const { engine } = await openEngine(t, { providers: [testProvider(() => ({ text: 'x' }))] })
  const seen: AgentEvent[] = []
  const stop = engine.observe(({ details, events, durationMs }) => {
    assert.equal(details.run_id, events[0]?.run_id)
    assert.ok(durationMs >= 0)
    seen.push(...events)
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assert.deepEqual(seen, events)
  stop()
  await runToEnd(engine, { goal: 'shell: true' })
  assert.equal(seen.length, events.length)
})

test('an observer that throws causes a warning, and the run continues', async (t) => {
  const { engine } = await openEngine(t, { providers: [testProvider(() => ({ text: 'x' }))] })
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  const stop = engine.observe(() => {
    throw new Error('no')
  })
  const { details } = await runToEnd(engine, { goal: 'shell: true' })
  stop()
  assert.equal(details.status, 'achieved')
  assert.match((await warned).message, /observer/)
})

test('an engine reports how many runs wait, and whether its store is writable', async (t) => {
  let go = (): void => {}
  const may = new Promise<void>((resolve) => (go = resolve))
  const answer = async (): Promise<{ text: string }> => {
    await may
    return { text: 'x' }
  }
  const { engine } = await openEngine(t, {
    providers: [testProvider(answer)],
    maxConcurrentRuns: 1,
    cwdPolicy: 'allow',
  })
  assert.deepEqual(engine.capacity(), { queued: 0, maxQueued: 256 })
  const request = { goal: 'shell: false', max_iterations: 1 }
  const first = await engine.create(request)
  for await (const [event] of await engine.subscribe(first.details.run_id)) {
    if (event?.kind === 'step_start') break
  }
  await engine.create(request)
  assert.equal(engine.capacity().queued, 1)
  await engine.check()
  go()
  await engine.close()
  await assert.rejects(engine.check(), { code: 'ERR_AGENT_STORE' })
})

test('observers see a run as it is stored, not as later records will leave it', async (t) => {
  let aborting: () => void = () => undefined
  const abortFollows = new Promise<void>((resolve) => (aborting = resolve))
  /** Stores the start of a run when the request to abort it waits as well. */
  class SlowStore extends MemoryStore {
    #last = Promise.resolve()

    override append(runId: string, records: readonly RunRecord[]): Promise<void> {
      const has = (kind: RunRecord['kind']): boolean => records.some((each) => each.kind === kind)
      if (has('abort_requested')) aborting()
      const before = this.#last
      this.#last = (async () => {
        await before
        if (has('run_started')) {
          void engine.abort(runId)
          await abortFollows
        }
        await super.append(runId, records)
      })()
      return this.#last
    }
  }
  const { engine } = await openEngine(t, {
    store: new SlowStore(),
    providers: [testProvider(() => ({ text: 'x' }))],
  })
  const seen: [number, number | undefined, string][] = []
  engine.observe(({ details, events }) => {
    seen.push([details.last_seq, events.at(-1)?.seq, details.status])
  })
  const { details } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(details.status, 'aborted')
  for (const [last, newest] of seen) assert.equal(last, newest)
  const statuses = new Set(seen.map(([, , status]) => status))
  assert.deepEqual([...statuses], ['pending', 'running', 'aborted'])
})
