import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { StoreError, type RunRecord } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { untilAborted } from '../../helpers/abort.js'
import { follow, openEngine, testProvider, type Said } from '../../helpers/engine.js'
import { FaultyStore } from '../../helpers/faulty-store.js'

const LOCKED = { code: 'ERR_AGENT_STORE_LOCKED' }
const sleeping: Said = { calls: [{ tool: 'bash', args: { command: 'sleep 600; touch late' } }] }

const has = (records: readonly RunRecord[], kind: RunRecord['kind']): boolean =>
  records.some((record) => record.kind === kind)

test('when another process takes over the store, every run stops and nothing is written', async (t) => {
  const store = new FaultyStore()
  const providers = [
    testProvider(({ signal }, n) =>
      n > 0
        ? untilAborted(signal)
        : sleeping,
    ),
  ]
  const { engine, cwd } = await openEngine(t, {
    store,
    providers,
    maxConcurrentRuns: 2,
    cwdPolicy: 'allow',
  })
  const inCommand = await engine.create({ goal: 'shell: false' })
  await follow(engine, inCommand.details.run_id, ({ kind }) => kind === 'tool_started')
  const inCall = await engine.create({ goal: 'shell: false' })
  await follow(engine, inCall.details.run_id, ({ kind }) => kind === 'step_start')
  const queued = await engine.create({ goal: 'shell: false' })
  const subscriptions = await Promise.all(
    [inCommand, inCall, queued].map(({ details: { run_id } }) =>
      engine.subscribe(run_id, { after: -1 }),
    ),
  )
  const tried = store.tried.length
  store.lose()
  for (const subscription of subscriptions) {
    assert.equal(await subscription.next(), null)
    assert.equal(subscription.end, 'shutdown')
  }
  await assert.rejects(engine.create({ goal: 'shell: true' }), LOCKED)
  await assert.rejects(engine.check(), LOCKED)
  await engine.close()
  assert.equal(store.tried.length, tried, 'nothing was passed to the store')
  assert.ok(!existsSync(join(cwd, 'late')))
})

test('a run whose append finds the store taken over stops without an end', async (t) => {
  const store = new FaultyStore()
  const { engine } = await openEngine(t, { store, providers: [testProvider(() => ({}))] })
  store.refuses = (_, records) => {
    if (has(records, 'model_turn')) {
      store.append = () => {
        store.lose()
        return Promise.reject(store.lost.reason as Error)
      }
    }
    return false
  }
  const { details } = await engine.create({ goal: 'shell: false' })
  const events = await follow(engine, details.run_id)
  assert.ok(!events.some(({ kind }) => kind === 'run_end'))
})

const taken = new StoreError('ERR_AGENT_STORE_LOCKED', 'another process has taken over the store')

for (const kind of ['tool_started', 'step_start', 'run_started'] as const) {
  test(`no command starts after the store was found to be lost at ${kind}`, async (t) => {
    const store = new FaultyStore()
    const said = { calls: [{ tool: 'bash', args: { command: 'echo tool >> ran' } }] }
    const providers = [testProvider((_, n) => (n === 0 ? said : {}))]
    const { engine, cwd } = await openEngine(t, { store, providers })
    const isLast = (record: RunRecord): boolean =>
      record.kind === kind &&
      (record.kind !== 'step_start' || record.payload.node === 'evaluate')
    store.refuses = (_, records) => {
      if (!records.some(isLast)) return false
      // No signal: only the next call of the store finds the loss.
      store.append = () => Promise.reject(taken)
      throw taken
    }
    const { details } = await engine.create({ goal: 'shell: echo check >> ran; false' })
    const events = await follow(engine, details.run_id)
    assert.ok(!events.some((event) => event.kind === 'run_end'))
    const ran = { run_started: [], tool_started: ['check'], step_start: ['check', 'tool'] }[kind]
    assert.deepEqual(linesOf(join(cwd, 'ran')), ran)
  })
}

test('a check that is resumed after a restart asks the store before its command', async (t) => {
  const store = new FaultyStore()
  const providers = [testProvider(() => ({}))]
  const first = await openEngine(t, { store, providers })
  const goal = 'shell: echo check >> ran; sleep 600'
  const { details } = await first.engine.create({ goal })
  await follow(first.engine, details.run_id, ({ kind }) => kind === 'run_started')
  while (linesOf(join(first.cwd, 'ran')).length === 0) await nextTurn()
  await first.engine.close()
  store.check = () => Promise.reject(taken)
  const second = await openEngine(t, { store, providers, cwd: first.cwd })
  const events = await follow(second.engine, details.run_id)
  assert.ok(!events.some(({ kind }) => kind === 'run_end'))
  assert.deepEqual(linesOf(join(first.cwd, 'ran')), ['check'])
})

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}
