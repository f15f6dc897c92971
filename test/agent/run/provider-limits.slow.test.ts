/** Limits of providers, which the runs of a process share. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, RunEngine, type ModelRequest, type ProviderLimitsById } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { MinuteWindow } from '../../../lib/agent/run/minute-window.js'
import { ProviderLimiter, type CallPlace } from '../../../lib/agent/run/provider-limiter.js'
import { untilAborted } from '../../helpers/abort.js'
import { follow, openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'
import { judgeProvider } from '../../helpers/judge.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'
import { seeded } from '../models/exchange.js'

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const T0 = Date.UTC(2026, 0, 1)

test('a window has room again once what happened is a minute ago', () => {
  const window = new MinuteWindow(3)
  window.add(2, T0)
  assert.equal(window.untilRoom(1, T0), 0)
  assert.equal(window.untilRoom(2, T0), 61_000)
  window.add(1, T0 + 30_500)
  assert.equal(window.untilRoom(1, T0 + 30_500), 30_500)
  assert.equal(window.untilRoom(3, T0 + 30_500), 60_500)
  assert.equal(window.untilRoom(2, T0 + 61_000), 0)
})

test('what is larger than the limit has room in an empty window', () => {
  const window = new MinuteWindow(10)
  assert.equal(window.untilRoom(99, T0), 0)
  window.add(99, T0)
  assert.equal(window.untilRoom(1, T0 + 60_999), 1)
  assert.equal(window.untilRoom(99, T0 + 61_000), 0)
})

test('what did not happen is taken back', () => {
  const window = new MinuteWindow(10)
  window.add(10, T0)
  window.takeBack(4, T0, T0 + 5_000)
  assert.equal(window.untilRoom(4, T0 + 5_000), 0)
  window.takeBack(4, T0 + 2_000, T0 + 5_000)
  assert.equal(window.untilRoom(5, T0 + 5_000), 56_000)
})

type Limits = Record<'concurrent' | 'requestsPerMinute' | 'tokensPerMinute', number>

/** One call as the obvious version sees it. */
interface Call {
  readonly runId: string
  readonly tenant: null
  readonly root: string
  readonly tokens: number
  readonly stop: AbortController
  place: CallPlace | undefined
  isAborted: boolean
}

/** The obvious version of the limiter: everything that ever happened, in lists. */
class Plain {
  readonly limits: Limits
  readonly happened: { readonly at: number; readonly requests: number; tokens: number }[] = []
  readonly waiting: Call[] = []
  readonly roots: string[] = []
  head: Call | undefined
  working = 0

  constructor(limits: Limits) {
    this.limits = limits
  }

  add(call: Call): void {
    this.waiting.push(call)
    if (!this.roots.includes(call.root)) this.roots.push(call.root)
  }

  drop(call: Call): void {
    const index = this.waiting.indexOf(call)
    if (index >= 0) this.waiting.splice(index, 1)
    if (this.head === call) this.head = undefined
    this.#tidy()
  }

  #tidy(): void {
    for (const root of [...this.roots])
      if (!this.waiting.some((one) => one.root === root))
        this.roots.splice(this.roots.indexOf(root), 1)
  }

  #sum(field: 'requests' | 'tokens', now: number): number {
    // A second counts until all of it is a minute ago.
    const counts = this.happened.filter(({ at }) => Math.floor(at / 1000) * 1000 + 61_000 > now)
    return counts.reduce((sum, one) => sum + one[field], 0)
  }

  /** Which calls begin now, in their order. */
  begins(now: number): Call[] {
    const { concurrent, requestsPerMinute, tokensPerMinute } = this.limits
    const begun: Call[] = []
    for (;;) {
      if (this.head === undefined) {
        const [root] = this.roots
        if (root === undefined) return begun
        this.head = this.waiting.find((one) => one.root === root)!
        this.waiting.splice(this.waiting.indexOf(this.head), 1)
        this.roots.push(this.roots.shift()!)
        this.#tidy()
      }
      const { tokens } = this.head
      const fits =
        this.working < concurrent &&
        this.#sum('requests', now) + 1 <= requestsPerMinute &&
        this.#sum('tokens', now) + Math.min(tokens, tokensPerMinute) <= tokensPerMinute
      if (!fits) return begun
      this.happened.push({ at: now, requests: 1, tokens })
      this.working += 1
      begun.push(this.head)
      this.head = undefined
    }
  }
}

for (const seed of [1, 2, 3, 4, 5, 6])
  test(`calls begin when and in the order in which a plain list says: seed ${seed}`, async () => {
    const random = seeded(seed)
    const below = (count: number): number => Math.floor(random() * count)
    const clock = new ShiftedClock()
    const limits = {
      concurrent: 1 + below(4), requestsPerMinute: 3 + below(20), tokensPerMinute: 200 + below(800),
    }
    const limiter = new ProviderLimiter(limits, clock)
    const plain = new Plain(limits)
    const began: Call[] = []
    const waits = new Set<Call>()
    const works: { readonly call: Call; readonly at: number }[] = []
    const times: number[] = []
    let made = 0
    const come = (): void => {
      const call: Call = {
        runId: `run${made++}`, tenant: null, root: `root${below(5)}`, tokens: 1 + below(120),
        stop: new AbortController(), place: undefined, isAborted: false,
      }
      const entry = { ...call, signal: call.stop.signal }
      const place = limiter.tryEnter(entry)
      plain.add(call)
      const begin = (given: CallPlace): void => {
        call.place = given
        waits.delete(call)
        began.push(call)
        works.push({ call, at: clock.steady() })
        times.push(clock.steady())
      }
      if (place !== null) return begin(place)
      waits.add(call)
      limiter.wait(entry).then(begin, () => (call.isAborted = true))
    }
    const compare = async (): Promise<void> => {
      const expected = plain.begins(clock.steady())
      await settle()
      assert.deepEqual(began.splice(0).map(({ runId }) => runId), expected.map((one) => one.runId))
      assert.ok(works.length <= limits.concurrent)
    }
    const end = (): void => {
      const [{ call, at } = assert.fail()] = works.splice(below(works.length), 1)
      const used = [null, 0, call.tokens + below(50), below(call.tokens)][below(4)]!
      plain.working -= 1
      const more = (used ?? call.tokens) - call.tokens
      if (more > 0) plain.happened.push({ at: clock.steady(), requests: 0, tokens: more })
      if (more < 0) {
        const second = Math.floor(at / 1000)
        const then = plain.happened.filter((one) => Math.floor(one.at / 1000) === second)
        let back = -more
        for (const one of then) {
          const less = Math.min(back, one.tokens)
          one.tokens -= less
          back -= less
        }
      }
      call.place!.end(used)
      call.place!.end(1_000_000)
    }
    for (let step = 0; step < 1_500; step++) {
      // The time of day may be set at any moment.
      clock.shiftMs = (below(11) - 5) * HOUR
      const what = below(10)
      if (what < 4) come()
      else if (what < 7 && works.length > 0) end()
      else if (what === 7 && waits.size > 0) {
        const call = [...waits][below(waits.size)]!
        waits.delete(call)
        plain.drop(call)
        call.stop.abort(new Error('stop'))
        await settle()
        assert.ok(call.isAborted, 'it does not wait any longer')
      } else {
        // In small steps, so that nothing begins later than it may.
        for (let left = below(4_000); left > 0; left -= 250) {
          clock.advance(Math.min(left, 250))
          await compare()
        }
      }
      await compare()
    }
    for (let i = 0; waits.size > 0; i++) {
      assert.ok(i < 100_000, 'nobody waits for ever')
      while (works.length > 0) end()
      await compare()
      clock.advance(250)
      await compare()
    }
    for (const [i, time] of times.entries()) {
      const later = times[i + limits.requestsPerMinute]
      assert.ok(later === undefined || later - time > 60_000, 'no minute has more calls')
    }
    while (works.length > 0) end()
    assert.equal(clock.pending, 0)
  })

const WAITING = { goal: 'shell: false', max_iterations: 1 }

/** A provider whose calls last until they are let go, and how many there were at a time. */
function slow(): {
  readonly provider: ReturnType<typeof testProvider>
  readonly calls: (() => void)[]
  most: number
} {
  let now = 0
  const state = {
    calls: [] as (() => void)[],
    most: 0,
    provider: testProvider(async ({ signal }: ModelRequest) => {
      now += 1
      state.most = Math.max(state.most, now)
      await new Promise<void>((resolve, reject) => {
        state.calls.push(resolve)
        untilAborted(signal).catch(reject)
      }).finally(() => (now -= 1))
      return {}
    }),
  }
  return state
}

/** Resolves once that many calls are under way. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settle()
}

test('runs of several engines share the limits of one object, and only those', async (t) => {
  const shared = { concurrent: 1 }
  const { provider, calls, ...state } = slow()
  const engines = []
  for (let i = 0; i < 2; i++)
    engines.push(await openEngine(t, { providers: [provider], providerLimits: { test: shared } }))
  const runs = engines.map(({ engine }) => runToEnd(engine, WAITING))
  for (let i = 0; i < 2; i++) {
    await until(() => calls.length === i + 1)
    await settle()
    assert.equal(calls.length, i + 1)
    calls[i]!()
  }
  await Promise.all(runs)
  assert.ok(state.most <= 1)
  const other = await openEngine(t, {
    providers: [provider], providerLimits: { test: { concurrent: 1 } },
  })
  const free = await openEngine(t, { providers: [provider] })
  const more = [other, free].map(({ engine }) => runToEnd(engine, WAITING))
  await until(() => calls.length === 4)
  for (const go of calls) go()
  await Promise.all(more)
})

test('a run that waits long says so once, its time stands still, and an abort ends it', async (t) => {
  const clock = new ManualClock(T0)
  const { provider, calls } = slow()
  const { engine } = await openEngine(t, {
    providers: [provider], providerLimits: { test: { requestsPerMinute: 1 } }, clock,
    cwdPolicy: 'allow', maxConcurrentRuns: 3,
  })
  const first = runToEnd(engine, WAITING)
  await until(() => calls.length === 1)
  calls[0]!()
  await first
  const { details } = await engine.create({ ...WAITING, max_seconds: 5 })
  const { details: second } = await engine.create(WAITING)
  const started = (runId: string): Promise<unknown> =>
    follow(engine, runId, ({ kind, payload }) => kind === 'step_start' && payload.node === 'plan')
  const said = follow(engine, details.run_id, ({ kind }) => kind === 'log')
  await Promise.all([started(details.run_id), started(second.run_id)])
  await settle()
  clock.advance(2_000)
  const message = (await said).at(-1)
  assert.deepEqual(message?.kind === 'log' && message.payload, {
    level: 'info', message: 'waiting for test: the limit of 1 calls a minute is reached',
  })
  await engine.abort(second.run_id)
  const aborted = await follow(engine, second.run_id)
  assert.equal(aborted.at(-1)?.kind, 'run_end')
  assert.equal(calls.length, 1)
  clock.advance(60_000)
  await until(() => calls.length === 2)
  calls[1]!()
  const events = await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
  assert.equal(events.filter(({ kind }) => kind === 'log').length, 1)
})

test('tokens count as estimated, then as they were used', async (t) => {
  const clock = new ManualClock(T0)
  let calls = 0
  const provider = testProvider(() => {
    calls += 1
    return { tokens: [99_900, 100] }
  })
  const { engine } = await openEngine(t, {
    providers: [provider], clock, providerLimits: { test: { tokensPerMinute: 100_000 } },
  })
  const { details } = await engine.create({ ...WAITING, max_iterations: 2 })
  const said = follow(engine, details.run_id, ({ kind }) => kind === 'log')
  await follow(engine, details.run_id, ({ kind, iteration, payload }) =>
    kind === 'step_start' && payload.node === 'plan' && iteration === 2)
  await settle()
  assert.equal(calls, 1)
  clock.advance(2_000)
  const last = (await said).at(-1)
  assert.match(last?.kind === 'log' ? last.payload.message : '', /100000 tokens a minute/)
  clock.advance(59_000)
  await follow(engine, details.run_id)
  assert.equal(calls, 2)
})

test('calls of the judge wait as well', async (t) => {
  const clock = new ManualClock(T0)
  const { provider: judge, asked } = judgeProvider(() => ({ achieved: false, reason: 'no' }))
  const worker = testProvider(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? {}
      : { calls: [{ tool: 'bash', args: { command: 'echo x > x' } }] })
  const { engine } = await openEngine(t, {
    providers: [worker, judge], judgeModel: 'judge:j', clock,
    providerLimits: { judge: { requestsPerMinute: 1 } },
  })
  const goal = 'Do it.'
  await runToEnd(engine, { goal, max_iterations: 1 })
  assert.equal(asked.length, 1)
  const { details } = await engine.create({ goal, max_iterations: 1 })
  const said = follow(engine, details.run_id, ({ kind, payload }) =>
    kind === 'log' && /waiting for judge/.test(payload.message))
  await follow(engine, details.run_id, ({ kind, payload }) =>
    kind === 'step_start' && payload.node === 'evaluate')
  while (clock.pending === 0) await settle()
  await settle()
  clock.advance(2_000)
  await said
  clock.advance(60_000)
  await follow(engine, details.run_id)
  assert.equal(asked.length, 2)
})

test('limits of providers are checked when the engine is opened', async (t) => {
  const roots = [scratch(t)]
  const open = (providerLimits: unknown): Promise<RunEngine> =>
    RunEngine.open({
      store: new MemoryStore(), roots, providers: [testProvider(() => ({}))],
      providerLimits: providerLimits as ProviderLimitsById,
    })
  for (const [limits, message] of [
    [{ nobody: { concurrent: 1 } }, /there is no provider nobody/],
    [{ test: {} }, /providerLimits\.test needs concurrent/],
    [{ test: 3 }, /providerLimits\.test must be an object/],
    [{ test: { concurrent: 0 } }, /providerLimits\.test\.concurrent must be a positive integer/],
    [{ test: { tokensPerMinute: 1.5 } }, /tokensPerMinute must be a positive integer/],
    [{ test: { rpm: 5 } }, /rpm/],
  ] as const)
    await assert.rejects(open(limits), (error: Error) => {
      assert.ok(error instanceof TypeError)
      assert.match(error.message, message)
      return true
    })
})
