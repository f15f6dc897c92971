import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  InvalidRequestError,
  MemoryStore,
  RunEngine,
  type AgentEvent,
  type EngineOptions,
  type JsonObject,
  type Message,
} from 'runwright/agent'
import { findForkPoint, type ForkAt } from '../../../lib/agent/request/fork-point.js'
import { loadState } from '../../../lib/agent/log/state.js'
import {
  follow,
  openEngine,
  runToEnd,
  scratch,
  testProvider,
  type Said,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { judgeProvider } from '../../helpers/judge.js'

const invalid = (pointer: string, message: RegExp) => (error: Error): boolean => {
  assert.ok(error instanceof InvalidRequestError, String(error))
  assert.equal(error.violations[0]?.pointer, pointer)
  assert.match(error.message, message)
  return true
}
const CHECKPOINT = { code: 'ERR_AGENT_CHECKPOINT' }
const inPlace = { workspace: 'in_place' }

/** An engine whose runs note the conversations that their models get. */
async function engineOf(
  t: TestContext,
  said: (messages: readonly Message[]) => Said = () => ({}),
  options: Partial<EngineOptions> = {},
): Promise<{
  readonly engine: RunEngine
  readonly store: MemoryStore
  readonly calls: (readonly Message[])[]
  readonly cwd: string
}> {
  const calls: (readonly Message[])[] = []
  const store = new MemoryStore()
  const provider = testProvider(({ messages }) => {
    calls.push([...messages])
    return said(messages)
  })
  const { engine, cwd } = await openEngine(t, { store, providers: [provider], ...options })
  return { engine, store, calls, cwd }
}

async function forkToEnd(
  engine: RunEngine,
  runId: string,
  request: JsonObject = {},
): Promise<{ readonly events: AgentEvent[]; readonly runId: string }> {
  const { details } = await engine.fork(runId, { ...inPlace, ...request })
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  return { events, runId: details.run_id }
}

const texts = (messages: readonly Message[]): string[] =>
  messages.map((one) => (one.role === 'tool' ? one.output : one.text.split('\n').at(-1)!))

test('a fork goes on where a run stopped by its bound, with a message', async (t) => {
  const { engine, calls } = await engineOf(t, (messages) =>
    texts(messages).includes('write it')
      ? { calls: [{ tool: 'write_file', args: { path: 'done', content: '' } }] }
      : { text: 'no idea' },
  )
  const request = { goal: 'shell: test -f done', max_iterations: 2, max_seconds: 100 }
  const source = await runToEnd(engine, request)
  assert.equal(source.details.end_reason, 'max_iterations')
  const before = source.events
  const { runId, events } = await forkToEnd(engine, source.details.run_id, {
    message: 'write it', max_iterations: 3,
  })
  const details = await engine.get(runId)
  assert.deepEqual(details.forked_from, {
    run_id: source.details.run_id, seq: source.details.last_seq,
  })
  assert.equal(details.status, 'achieved')
  assert.equal(details.parent_run_id, null)
  assert.deepEqual([details.max_iterations, details.max_seconds, details.iteration], [3, 100, 1])
  const first = calls[2]!
  assert.deepEqual(first.slice(0, -2).map(({ role }) => role), [
    'user', 'assistant', 'user', 'assistant', 'user',
  ])
  assert.match(texts(first)[0]!, /exit code|State now/)
  const told = first.at(-2)
  assert.match(told?.role === 'user' ? told.text : '', /goes on/)
  assert.equal(texts(first).at(-1), 'write it')
  assert.equal(events[0]?.kind === 'run_created' && events[0].payload.messages?.[0]?.text, 'write it')
  assert.deepEqual(await engine.events(source.details.run_id, { after: 0, limit: 1000 }), before)
})

test('a fork of a run that met its goal ends at once, but not when it is told something', async (t) => {
  const { engine, calls } = await engineOf(t)
  const { details } = await runToEnd(engine, { goal: 'shell: true' })
  assert.deepEqual([details.status, details.iteration], ['achieved', 0])
  const silent = await forkToEnd(engine, details.run_id)
  assert.equal((await engine.get(silent.runId)).iteration, 0)
  assert.equal(calls.length, 0)
  const told = await forkToEnd(engine, details.run_id, { message: 'polish it' })
  const { status, iteration } = await engine.get(told.runId)
  assert.deepEqual([status, iteration, calls.length], ['achieved', 1, 1])
  assert.equal(texts(calls[0]!).at(-1), 'polish it')
})

test('what a run did not hear, its fork at the end hears first, and a fork of that as well', async (t) => {
  let runId = ''
  const { engine, calls } = await engineOf(
    t,
    (messages) => {
      const isFirst = !messages.some(({ role }) => role === 'assistant')
      if (isFirst) void engine.message(runId, { text: 'unheard' })
      return {}
    },
    { maxTurnsPerIteration: 1 },
  )
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  runId = details.run_id
  const end = (await follow(engine, runId)).at(-1)
  assert.equal(end?.kind === 'run_end' && end.payload.unheard?.length, 1)
  const fork = await engine.fork(runId, { ...inPlace, message: 'own' })
  await engine.abort(fork.details.run_id)
  const events = await follow(engine, fork.details.run_id)
  assertInvariants(events)
  const given = events[0]?.kind === 'run_created' ? events[0].payload.messages : []
  assert.deepEqual(given?.map(({ text }) => text), ['unheard', 'own'])
  const before = calls.length
  const second = await forkToEnd(engine, fork.details.run_id, { message: 'last' })
  const own = ['unheard', 'own', 'last']
  const heard = texts(calls[before] ?? []).filter((text) => own.includes(text))
  assert.deepEqual(heard, own)
  const created = second.events[0]
  const messages = created?.kind === 'run_created' ? created.payload.messages : []
  assert.equal(messages?.at(-1)?.text, 'last')
})

test('points that are no end of an iteration are refused by name', async (t) => {
  const { engine, store } = await engineOf(t)
  const { details, events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
  const { run_id, last_seq } = details
  const ends = events.filter(({ kind }) => kind === 'iteration_complete').map(({ seq }) => seq)
  for (const [at, pointer, message] of [
    [{ iteration: 3 }, '/at/iteration', /iteration 3 has not ended; the last that has ended is 2/],
    [{ seq: last_seq + 1 }, '/at/seq', /the last event of the run is/],
    [{ iteration: -1 }, '/at', /at/],
    ['middle', '/at', /at/],
    [{}, '/at', /at/],
  ] as const)
    await assert.rejects(engine.fork(run_id, { ...inPlace, at }), invalid(pointer, message))
  const pointOf = async (at: ForkAt) => (await findForkPoint(store, run_id, at)).seq
  const started = events.find(({ kind }) => kind === 'run_started')!.seq
  for (const { seq, iteration } of events) {
    const end = ends[iteration - 1] ?? started
    assert.equal(await pointOf({ seq }), iteration === 0 ? started : Math.max(seq, end), `${seq}`)
  }
  assert.equal(await pointOf({ iteration: 1 }), ends[0])
  assert.equal(await pointOf({ iteration: 0 }), started)
  assert.equal(await pointOf('start'), started)
  assert.equal(await pointOf('end'), last_seq)
})

test('without stored files only the end is forked, in place', async (t) => {
  const { engine } = await engineOf(t)
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  for (const at of ['start', { iteration: 1 }])
    await assert.rejects(engine.fork(details.run_id, { ...inPlace, at }), {
      ...CHECKPOINT, problem: 'not_kept', message: /only its end can be forked/,
    })
  await assert.rejects(
    engine.fork(details.run_id, {}),
    invalid('/workspace', /the host must set workspaceFolder for that: use in_place/),
  )
})

test('a live run is not forked in place', async (t) => {
  const { engine } = await engineOf(t, () => ({}), {})
  const { details } = await engine.create({ goal: 'shell: false', hitl_enabled: true })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  await assert.rejects(engine.fork(details.run_id, inPlace), {
    code: 'ERR_AGENT_RUN_STATE', problem: 'live',
  })
  await engine.abort(details.run_id)
})

test('requests for forks are checked: fields, secrets, tenants, keys', async (t) => {
  const { engine } = await engineOf(t, () => ({}), { secrets: ['hunter22'] })
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const { run_id } = details
  for (const field of [{ goal: 'x' }, { check: 'true' }, { message: '' }, { message: ' ' },
    { message: 'hunter22' }, { message: 'ä'.repeat(20_000) }, { apply: 'on_achieved' },
    { max_iterations: 0 }, { model_name: 'nobody:x' }, { cwd: '/' }])
    await assert.rejects(
      engine.fork(run_id, { ...inPlace, ...field } as JsonObject),
      { code: 'ERR_AGENT_INVALID_REQUEST' },
      JSON.stringify(field),
    )
  const caller = { owner: { id: 'eve', tenant: 'other' } }
  await assert.rejects(engine.fork(run_id, inPlace, { caller }), { code: 'ERR_AGENT_UNKNOWN_RUN' })
  const key = { idempotencyKey: 'k' }
  const first = await engine.fork(run_id, { ...inPlace, message: 'a' }, key)
  const second = await engine.fork(run_id, { ...inPlace, message: 'a' }, key)
  assert.deepEqual([first.created, second.created], [true, false])
  assert.equal(second.details.run_id, first.details.run_id)
  const reused = { code: 'ERR_AGENT_IDEMPOTENCY' }
  await assert.rejects(engine.fork(run_id, { ...inPlace, message: 'b' }, key), reused)
  await assert.rejects(engine.create({ goal: 'shell: true' }, key), reused)
})

test('a fork with another model gets the conversation without the parts of the first', async (t) => {
  const parts = { format: 'one', value: [{ signature: 'x' }] }
  const base = testProvider(() => ({}))
  const got: (readonly Message[])[] = []
  const provider = {
    ...base,
    create: (name: string) => {
      const model = base.create(name)
      return {
        ...model,
        name: `test:${name}`,
        complete: async (request: Parameters<typeof model.complete>[0]) => {
          got.push([...request.messages])
          const turn = await model.complete(request)
          return { ...turn, message: { ...turn.message, parts } }
        },
      }
    },
  }
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const partsOf = (messages: readonly Message[] = []) =>
    messages.flatMap((one) => (one.role === 'assistant' ? [one.parts] : []))
  await forkToEnd(engine, details.run_id, { max_iterations: 1 })
  assert.deepEqual(partsOf(got.at(-1)), [parts])
  await forkToEnd(engine, details.run_id, { max_iterations: 1, model_name: 'test:other' })
  assert.deepEqual(partsOf(got.at(-1)), [undefined])
})

test('a source can be deleted, and its test changes are noticed in the fork', async (t) => {
  const { engine, store, cwd } = await engineOf(t, ({ length }) =>
    length < 3
      ? { calls: [{ tool: 'bash', args: { command: 'echo "// weaker" >> test/a.test.js' } }] }
      : {},
  )
  const code = `import { test } from 'node:test'\ntest('a', () => {})\n`
  mkdirSync(join(cwd, 'test'))
  writeFileSync(join(cwd, 'test', 'a.test.js'), code)
  writeFileSync(join(cwd, 'package.json'), '{"type":"module"}')
  const { details } = await runToEnd(engine, {
    goal: 'fix', check: 'node --test && test -f done', max_iterations: 1,
  })
  const fork = await engine.fork(details.run_id, { ...inPlace, max_iterations: 1 })
  await engine.delete(details.run_id)
  const events = await follow(engine, fork.details.run_id)
  assertInvariants(events)
  const check = events.find(({ kind }) => kind === 'goal_check')
  assert.match(check?.kind === 'goal_check' ? check.payload.reason : '', /a\.test\.js was modified/)
  const state = await loadState(store, fork.details.run_id)
  assert.ok((state?.frozen.fork?.messages.length ?? 0) > 2)
})

test('isolated runs are refused where they cannot be, by the field that is at fault', async (t) => {
  const { engine } = await engineOf(t)
  const goal = { goal: 'shell: true' }
  await assert.rejects(
    engine.create({ ...goal, workspace: 'isolated' }),
    invalid('/workspace', /the host must set workspaceFolder/),
  )
  const applied = { ...goal, apply: 'on_achieved' }
  await assert.rejects(engine.create(applied), invalid('/apply', /isolated/))
  const workspaceFolder = scratch(t)
  const { engine: off, cwd } = await openEngine(t, { workspaceFolder, checkpoints: 'off' })
  await assert.rejects(
    off.create({ ...goal, cwd, workspace: 'isolated' }),
    invalid('/workspace', /the host has no checkpoints/),
  )
  const { engine: able } = await openEngine(t, {
    workspaceFolder, checkpoints: 'auto', workspace: 'isolated',
  })
  const unkept = { ...goal, checkpoints: 'off' }
  await assert.rejects(able.create(unkept), invalid('/checkpoints', /isolated/))
})

test('the judge of a fork also sees what its source had done', async (t) => {
  const { provider, asked } = judgeProvider(() => ({ achieved: false, reason: 'not yet' }))
  const said: Said = { calls: [{ tool: 'write_file', args: { path: 'early', content: 'x' } }] }
  const worker = testProvider(({ messages }) => (messages.length < 2 ? said : {}))
  const options = { providers: [worker, provider], judgeModel: 'judge:j' }
  const { engine } = await openEngine(t, options)
  const { details } = await runToEnd(engine, { goal: 'do it', max_iterations: 1 })
  const request = { message: 'go on', max_iterations: 1 }
  const fork = await forkToEnd(engine, details.run_id, request)
  await forkToEnd(engine, fork.runId, request)
  for (const { messages } of asked) assert.match(JSON.stringify(messages), /path[^,]{1,6}early/)
  assert.equal(asked.length, 3)
})
