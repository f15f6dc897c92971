/** A process that is closed stores the files of its isolated runs, for a bounded time. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { RunEngine, type ObjectStore } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { MemoryObjects } from '../../../lib/agent/stores/memory-store.js'
import { untilAborted } from '../../helpers/abort.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { SharedCluster } from '../testing/shared-cluster.js'

/** Objects that do not answer any more from the first call after `stop()`. */
function silentObjects() {
  let isSilent = false
  let tell: () => void = () => undefined
  const asked = new Promise<void>((resolve) => (tell = resolve))
  const objects = new Proxy(new MemoryObjects(), {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        if (!isSilent) return (value as (...all: unknown[]) => unknown).apply(target, args)
        tell()
        return new Promise(() => undefined)
      }
    },
  })
  const set = (to: boolean) => () => void (isSilent = to)
  return { objects, asked, stop: set(true), answer: set(false) }
}

test('a shutdown waits 4.5 s for the files of a run, which then stops without them', async (t) => {
  const cluster = new SharedCluster()
  const [cwd, clock] = [scratch(t), new ManualClock(Date.now())]
  const { objects, asked, stop, answer } = silentObjects()
  const write = { tool: 'write_file', args: { path: 'a', content: 'a\n' } }
  let waits: () => void = () => undefined
  const waiting = new Promise<void>((resolve) => (waits = resolve))
  const open = async (
    heard: (texts: string) => void,
    ends: boolean,
  ): Promise<RunEngine> => await opened(t, {
    store: await cluster.connect(),
    roots: [cwd],
    objects: objects as ObjectStore,
    workspaceFolder: scratch(t),
    clock,
    defaultModel: 'test:m',
    providers: [
      testProvider(async ({ messages, signal }) => {
        if (messages.at(-1)?.role !== 'tool') {
          heard(JSON.stringify(messages))
          return { calls: [write] }
        }
        if (ends) return {}
        waits()
        return await untilAborted(signal)
      }),
    ],
  })
  const first = await open(() => undefined, false)
  const request = { goal: 'shell: test -f a', cwd, workspace: 'isolated' }
  const { details } = await first.create(request)
  await waiting
  stop()
  let isClosed = false
  const closed = first.close().then(() => (isClosed = true))
  await asked
  clock.advance(4_499)
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
  assert.ok(!isClosed)
  clock.advance(1)
  await closed
  answer()
  let texts = ''
  const second = await open((all) => (texts ||= all), true)
  const events = await follow(second, details.run_id)
  assertInvariants(events)
  const at = events.findIndex(({ kind }) => kind === 'run_suspended')
  assert.notEqual(at, -1)
  const before = events.slice(0, at)
  assert.ok(!before.some((e) => e.kind === 'checkpoint' && e.payload.reason === 'shutdown'))
  const notes = before.flatMap((e) => (e.kind === 'log' ? [e.payload.message] : []))
  assert.match(notes.join('\n'), /^no checkpoint was made: the last checkpoint took too long$/m)
  // The next process says what that means.
  assert.match(texts, /What was changed after it is lost/)
  assert.equal((await second.get(details.run_id)).status, 'achieved')
})

test('a process whose store does not answer waits 5 s for its runs, and then for nothing', async (t) => {
  const cluster = new SharedCluster()
  const clock = new ManualClock(Date.now())
  let tell: () => void = () => undefined
  const suspending = new Promise<void>((resolve) => (tell = resolve))
  const store = await cluster.connect((records, append) => {
    if (records.at(-1)?.kind !== 'run_suspended') return append()
    tell()
    return new Promise(() => undefined)
  })
  const cwd = scratch(t)
  const engine = await opened(t, {
    store, roots: [cwd], clock, checkpoints: 'off', defaultModel: 'test:m',
    providers: [
      testProvider(({ signal }) => untilAborted(signal)),
    ],
  })
  const { details } = await engine.create({ goal: 'shell: false', cwd })
  await follow(engine, details.run_id, ({ kind }) => kind === 'step_start')
  const closed = engine.close()
  await suspending
  clock.advance(5_000)
  await closed
  // A timer of the process would keep it from exiting.
  assert.equal(clock.pending, 0)
})

async function opened(
  t: TestContext,
  options: Parameters<typeof RunEngine.open>[0],
): Promise<RunEngine> {
  const engine = await RunEngine.open(options)
  t.after(() => engine.close())
  return engine
}
