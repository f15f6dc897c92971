import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import {
  defineTool,
  ExhaustedError,
  ModelError,
  type AgentEvent,
  type CommandOptions,
  type CommandResult,
  type Executor,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { systemClock } from '../../../lib/internal/time.js'
import {
  exhausted, inOwnPlace, isExhausted, onOwnFiles, unreadable, untilPossible,
} from '../../../lib/agent/exhaustion.js'
import { follow, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const fault = (code: string): Error => Object.assign(new Error(`${code}: spawn`), { code })

const unreachable = new ModelError('ERR_AGENT_MODEL', 'x', {
  retryable: true,
  cause: new Error('connect', { cause: fault('EMFILE') }),
})

for (const [name, error, expected] of [
  ['EMFILE', fault('EMFILE'), true],
  ['ENFILE', fault('ENFILE'), true],
  ['EAGAIN', fault('EAGAIN'), true],
  ['ENOMEM', fault('ENOMEM'), true],
  ['an error because of EMFILE', new Error('x', { cause: fault('EMFILE') }), true],
  ['a model that could not be reached because of EMFILE', unreachable, true],
  ['an executor that says so', new ExhaustedError('no containers left'), true],
  ['ENOENT', fault('ENOENT'), false],
  ['EACCES', fault('EACCES'), false],
  ['ENOSPC', fault('ENOSPC'), false],
  ['a code of another world', Object.assign(new Error('x'), { code: 'constructor' }), false],
  ['a text', 'EMFILE', false],
] as const) {
  test(`${name} is ${expected ? '' : 'not '}a fault of the machine`, () => {
    assert.equal(isExhausted(error), expected)
  })
}

test('promises of the process are observed only while work on own files is done', async (t) => {
  const { mock } = t.mock.method(AsyncLocalStorage.prototype, 'disable')
  await inOwnPlace('x', async () => {
    await onOwnFiles('x', () => Promise.resolve())
    assert.equal(mock.callCount(), 0)
  })
  assert.equal(mock.callCount(), 1)
})

test('work on own files keeps its faults when other such work ends', async () => {
  let go: () => void = () => undefined
  const first = onOwnFiles('x', async () => {
    await new Promise<void>((resolve) => (go = resolve))
    return isExhausted(fault('EIO'))
  })
  await onOwnFiles('x', () => Promise.resolve())
  go()
  assert.equal(await first, true)
  assert.equal(isExhausted(fault('EIO')), false)
})

test('the error names the limit to raise', () => {
  const error = exhausted('no command', fault('EMFILE'))
  assert.match(error.message, /^no command: .*ulimit -n/)
})

/** What becomes of an error in three places: thrown as it is, or as a fault of the machine. */
for (const [code, anywhere, onOwn, inOwn] of [
  ['EMFILE', true, true, true],
  ['EIO', false, true, true],
  ['ENOSPC', false, true, true],
  ['EROFS', false, true, true],
  ['Unknown system error -116', false, true, true], // ESTALE
  ['Unknown system error -122', false, true, true], // EDQUOT
  ['EACCES', false, false, true],
  ['ENOENT', false, false, true],
  ['EBADF', false, false, false],
  ['EINVAL', false, false, false],
] as const) {
  test(`${code} is a fault of the machine where the engine keeps files, or is not`, async () => {
    const error = fault(code)
    const look = async (): Promise<null> => await Promise.reject(error).catch(unreadable)
    const outcome = (work: Promise<null>): Promise<unknown> =>
      work.catch((reason: unknown) => (reason instanceof ExhaustedError ? 'waits' : 'thrown'))
    const expected = (isFault: boolean): unknown => (isFault ? 'waits' : null)
    assert.equal(await outcome(look()), anywhere ? 'thrown' : null)
    assert.equal(await outcome(onOwnFiles('no file', look)), expected(onOwn))
    assert.equal(await outcome(inOwnPlace('no file', look)), expected(inOwn))
    const wrapped = (): Promise<never> => Promise.reject(new Error('x', { cause: error }))
    assert.equal(await outcome(onOwnFiles('no file', wrapped)), onOwn ? 'waits' : 'thrown')
    assert.equal(isExhausted(error), anywhere, 'it is not one outside')
  })
}

test('faults of a disk name what to do, and none of its files', async () => {
  const error = Object.assign(fault('EIO'), { path: '/secret', message: 'EIO: /secret' })
  await assert.rejects(onOwnFiles('no report can be read', () => Promise.reject(error)), {
    message: 'no report can be read: the disk reports an error; check it',
  })
})

test('causes that go round in a circle are followed to a limit', () => {
  const error = new Error('x')
  error.cause = error
  assert.equal(isExhausted(error), false)
})

/** Retries do not take their time here; limits do. */
const quick = {
  ...systemClock,
  setTimeout: (call: () => void, ms: number) => systemClock.setTimeout(call, ms > 5_000 ? ms : 1),
}

/** An executor that throws for its first commands, and then runs none of them really. */
class Starved implements Executor {
  readonly name = 'starved'
  readonly started: string[] = []
  faults: number

  constructor(faults: number) {
    this.faults = faults
  }

  async run(command: string, { onStart }: CommandOptions): Promise<CommandResult> {
    if (this.faults-- > 0) throw new ExhaustedError('no descriptors left')
    await onStart?.(1)
    this.started.push(command)
    const exitCode = command === 'check' && this.started.length < 3 ? 1 : 0
    return { exitCode, output: '', truncated: false, timedOut: false, durationMs: 1 }
  }

  killMarked(): Promise<number> {
    return Promise.resolve(0)
  }
}

const lines = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.kind === 'log' ? [event.payload.message] : []))

test('commands of checks and tools that could not be started are started later', async (t) => {
  const executor = new Starved(4)
  const { engine } = await openEngine(t, {
    executor,
    clock: quick,
    providers: [
      testProvider(({ run }) => {
        if (run.turn === 0) executor.faults = 7
        return run.turn > 0 ? {} : { calls: [{ tool: 'bash', args: { command: 'work' } }] }
      }),
    ],
  })
  const { events, details } = await runToEnd(engine, { goal: 'shell: check', max_iterations: 1 })
  assertInvariants(events)
  assert.equal(details.status, 'achieved')
  assert.deepEqual(executor.started, ['check', 'work', 'check'])
  assert.deepEqual(lines(events), [
    'waiting for the machine: no descriptors left',
    'the machine works again',
    'waiting for the machine: no descriptors left',
    'the machine works again',
  ])
})

test('while a run waits for the machine, the check of the engine says so', async (t) => {
  const executor = new Starved(Infinity)
  const { engine } = await openEngine(t, { executor, providers: [testProvider(() => ({}))] })
  const { details } = await engine.create({ goal: 'shell: check' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'log')
  await assert.rejects(engine.check(), {
    code: 'ERR_AGENT_EXHAUSTED',
    message: 'waiting for the machine: no descriptors left',
  })
  await engine.abort(details.run_id)
  assertInvariants(await follow(engine, details.run_id))
  assert.equal((await engine.get(details.run_id)).status, 'aborted')
  await engine.check()
})

test('a run that waits for the machine is suspended at once', async (t) => {
  const executor = new Starved(Infinity)
  const { engine } = await openEngine(t, { executor, providers: [testProvider(() => ({}))] })
  const { details } = await engine.create({ goal: 'shell: check' })
  const events = await engine.subscribe(details.run_id)
  await follow(engine, details.run_id, ({ kind }) => kind === 'log')
  await engine.close()
  const kinds: string[] = []
  for await (const batch of events) kinds.push(...batch.map(({ kind }) => kind))
  assert.ok(!kinds.includes('run_end'), kinds.join(' '))
})

for (const { effect, executions, exitCode } of [
  { effect: 'read', executions: 2, exitCode: 0 },
  { effect: 'unsafe', executions: 1, exitCode: 1 },
] as const) {
  test(`a call of class ${effect} that meets such a fault runs ${executions} times`, async (t) => {
    let count = 0
    const tool = defineTool({
      name: 'meets',
      description: 'Meets a fault of the machine.',
      parameters: { type: 'object' },
      effect,
      execute: () => {
        count += 1
        if (count === 1) throw fault('EMFILE')
        return 'done'
      },
    })
    const { engine } = await openEngine(t, {
      tools: [tool],
      executor: new Starved(0),
      clock: quick,
      providers: [
        testProvider(({ run }) => (run.turn > 0 ? {} : { calls: [{ tool: 'meets', args: {} }] })),
      ],
    })
    const { events } = await runToEnd(engine, { goal: 'shell: check', max_iterations: 1 })
    assertInvariants(events)
    assert.equal(count, executions)
    const codes = events.flatMap((event) =>
      event.kind === 'tool_result' ? [event.payload.exit_code] : [],
    )
    assert.deepEqual(codes, [exitCode])
  })
}

test('work that is not to be repeated as a whole waits, and can be stopped', async () => {
  const stop = new AbortController()
  let attempts = 0
  const work = async (): Promise<string> => {
    attempts += 1
    if (attempts === 1) throw fault('EMFILE')
    return 'read'
  }
  assert.equal(await untilPossible(work, stop.signal), 'read')
  const never = untilPossible(() => Promise.reject(fault('EMFILE')), stop.signal)
  stop.abort(new Error('stopped'))
  await assert.rejects(never, /stopped/)
  await assert.rejects(untilPossible(() => Promise.reject(fault('EIO')), stop.signal), /EIO/)
})

test('the time for which a run waits for the machine is not the time of the run', async (t) => {
  const clock = new ManualClock()
  const executor = new Starved(1)
  executor.started.push('', '')
  const { engine } = await openEngine(t, { executor, clock })
  const { details } = await engine.create({ goal: 'shell: check', max_seconds: 1 })
  await follow(engine, details.run_id, ({ kind }) => kind === 'log')
  clock.advance(5_000)
  assertInvariants(await follow(engine, details.run_id))
  assert.equal((await engine.get(details.run_id)).status, 'achieved')
})
