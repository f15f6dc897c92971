import assert from 'node:assert/strict'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  InvalidRequestError,
  MemoryStore,
  ModelError,
  RunEngine,
  type RunOwner,
  StoreError,
  type JsonObject,
} from 'runwright/agent'
import { untilAborted } from '../helpers/abort.js'
import {
  follow,
  openEngine,
  runToEnd,
  scratch,
  testProvider,
  type Said,
} from '../helpers/engine.js'
import { sampleRun } from '../../lib/agent/testing/sample-records.js'
import { assertInvariants } from '../helpers/invariants.js'
import { assertPlacesOfTenants } from '../helpers/queue-places.js'
import { write, kinds, last } from './run-events.js'

test('a goal that is already met is achieved with 0 iterations and no model call', async (t) => {
  let calls = 0
  const { engine } = await openEngine(t, { providers: [testProvider(() => (calls++, {}))] })
  const { events } = await runToEnd(engine, { goal: 'shell: true' })
  assert.deepEqual(kinds(events), ['run_created', 'run_started', 'goal_check', 'run_end'])
  assert.equal(last(events).iterations, 0)
  assert.equal(last(events).achieved, true)
  assert.equal(calls, 0)
})

test('the check is skipped and marked as cached if nothing has been written', async (t) => {
  const read = { calls: [{ tool: 'list_files', args: {} }] }
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, n) => (n % 2 === 0 ? read : {}))],
  })
  const { events } = await runToEnd(engine, {
    goal: 'shell: echo x >> ../checks; false',
    max_iterations: 2,
  })
  const cached = events.flatMap((event) =>
    event.kind === 'goal_check' ? [event.payload.cached] : [],
  )
  assert.deepEqual(cached, [false, true, true])
  assertInvariants(events)
})

test('at most maxTurnsPerIteration turns are taken before the goal is checked', async (t) => {
  const provider = testProvider((_, n) => write('a', `${n}`))
  const { engine } = await openEngine(t, { providers: [provider], maxTurnsPerIteration: 3 })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
  const turns = events.filter(({ kind }) => kind === 'model_turn').map(({ iteration }) => iteration)
  assert.deepEqual(turns, [1, 1, 1, 2, 2, 2])
  assertInvariants(events)
})

test('the token budget ends a run after the work that was paid for has been checked', async (t) => {
  const provider = testProvider((_, n) => ({ ...write('a', `${n}`), tokens: [100, 0] as const }))
  const { engine } = await openEngine(t, { providers: [provider] })
  const { events, details } = await runToEnd(engine, {
    goal: 'shell: false',
    max_total_tokens: 150,
  })
  assertInvariants(events)
  assert.equal(details.end_reason, 'token_budget')
  assert.equal(details.final_state.total_tokens, 200)
  assert.deepEqual(kinds(events).slice(-3), ['goal_check', 'iteration_complete', 'run_end'])
})

test('work that passes its check counts even if the budget is used up', async (t) => {
  const provider = testProvider(() => ({ ...write('done', ''), tokens: [500, 0] as const }))
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await runToEnd(engine, { goal: 'shell: test -f done', max_total_tokens: 10 })
  assert.equal(details.status, 'achieved')
})

test('a model that gives up ends the run as stuck', async (t) => {
  const { engine } = await openEngine(t, {
    providers: [testProvider(() => ({ text: 'No candidate left', stop: 'refusal' }))],
  })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false' })
  assertInvariants(events)
  assert.equal(details.end_reason, 'stuck')
  assert.equal(last(events).iterations, 1)
})

test('a model that calls no tool in three iterations is stuck', async (t) => {
  const { engine } = await openEngine(t, { providers: [testProvider(() => ({ text: 'done!' }))] })
  const { details } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(details.end_reason, 'stuck')
  assert.equal(details.iteration, 3)
})

for (const [name, call, exitCode, output] of [
  ['an unknown tool', { tool: 'fly', args: {} }, 127, /no tool fly.*bash/],
  ['arguments that violate the schema', { tool: 'read_file', args: { path: 7 } }, 1, /path/],
  [
    'a path outside the workspace',
    { tool: 'read_file', args: { path: '../../etc/passwd' } },
    1,
    /outside/i,
  ],
  ['a command that fails', { tool: 'bash', args: { command: 'echo oh; exit 3' } }, 3, /oh/],
] as const) {
  test(`${name} becomes a result with exit code ${exitCode}`, async (t) => {
    let received: unknown
    const provider = testProvider((request, n) => {
      if (n === 0) return { calls: [call] }
      received = request.messages.at(-1)
      return { stop: 'refusal' as const }
    })
    const { engine } = await openEngine(t, { providers: [provider] })
    const { events } = await runToEnd(engine, { goal: 'shell: false' })
    assertInvariants(events)
    const result = events.find((event) => event.kind === 'tool_result')
    assert.ok(result?.kind === 'tool_result')
    assert.equal(result.payload.exit_code, exitCode)
    assert.match(result.payload.output, output)
    assert.deepEqual(received, {
      role: 'tool',
      call_id: result.payload.call_id,
      tool: call.tool,
      output: result.payload.output,
      exit_code: exitCode,
    })
  })
}

test('reads of one turn run in parallel, and results keep the order of the calls', async (t) => {
  let arrived = 0
  let release: () => void = () => undefined
  const both = new Promise<void>((resolve) => (release = resolve))
  const slow = {
    name: 'meet',
    description: 'waits until two of its kind run',
    parameters: { type: 'object', properties: { n: { type: 'integer' } } },
    effect: 'read',
    execute: async (args: JsonObject) => {
      if (++arrived === 2) release()
      await both
      return { output: `met ${String(args['n'])}`, exitCode: 0 }
    },
  } as const
  const calls = [1, 2].map((n) => ({ tool: 'meet', args: { n } }))
  const provider = testProvider((_, n) => (n === 0 ? { calls } : { stop: 'refusal' as const }))
  const { engine } = await openEngine(t, { providers: [provider], tools: [slow] })
  const { events } = await runToEnd(engine, { goal: 'shell: false' })
  assertInvariants(events)
  const outputs = events.flatMap((event) =>
    event.kind === 'tool_result' ? [event.payload.output] : [],
  )
  assert.deepEqual(outputs, ['met 1', 'met 2'])
})

test('repeated call ids of a model are made unique in the run', async (t) => {
  const same = {
    calls: [
      { tool: 'list_files', args: {}, call_id: 'x' },
      { tool: 'list_files', args: {}, call_id: 'x' },
    ],
  }
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, n) => (n < 2 ? same : { stop: 'refusal' }))],
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false' })
  assertInvariants(events)
  const ids = events.flatMap((event) => (event.kind === 'tool_call' ? [event.payload.call_id] : []))
  assert.deepEqual(ids, ['x', 'c2', 'c3', 'c4'])
})

test('a permanent provider error ends the run and is in its events and details', async (t) => {
  const provider = testProvider(() => {
    throw new ModelError('ERR_AGENT_MODEL_AUTH', 'the key was refused', {
      retryable: false,
      statusCode: 401,
    })
  })
  const { engine, cwd } = await openEngine(t, { providers: [provider] })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false' })
  assertInvariants(events)
  assert.deepEqual(kinds(events).slice(-2), ['error', 'run_end'])
  assert.equal(details.status, 'failed')
  assert.equal(details.end_reason, 'provider_error')
  assert.equal(details.error?.message, 'the key was refused')
  assert.equal(details.error?.code, 'ERR_AGENT_MODEL_AUTH')
  assert.equal(details.error?.iteration, 1)
  assert.ok(!JSON.stringify(details).includes(`${cwd}/`) || details.cwd === cwd)
})

test('a transient provider error is retried, as the log shows', async (t) => {
  const provider = testProvider((_, n) => {
    if (n === 0)
      throw new ModelError('ERR_AGENT_MODEL', 'overloaded', { retryable: true, retryAfterMs: 1 })
    return write('done', '')
  })
  const { engine } = await openEngine(t, { providers: [provider], random: () => 0 })
  const { events, details } = await runToEnd(engine, { goal: 'shell: test -f done' })
  assertInvariants(events)
  assert.equal(details.status, 'achieved')
  assert.ok(
    events.some((event) => event.kind === 'log' && /overloaded/.test(event.payload.message)),
  )
})

test('a model whose output the provider rejects gets the reason and continues', async (t) => {
  let received = ''
  const provider = testProvider((request, n) => {
    if (n === 0)
      throw new ModelError('ERR_AGENT_MODEL', 'broken json', {
        retryable: false,
        modelMistake: true,
      })
    const message = request.messages.at(-1)
    if (n === 1) received = message?.role === 'user' ? message.text : ''
    return write('done', '')
  })
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await runToEnd(engine, { goal: 'shell: test -f done' })
  assert.equal(details.status, 'achieved')
  assert.match(received, /broken json/)
})

test('an exception in a model ends the run as internal_error, with a traceback', async (t) => {
  const { engine } = await openEngine(t, {
    providers: [
      testProvider(() => {
        throw new RangeError('boom')
      }),
    ],
  })
  const { details } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(details.end_reason, 'internal_error')
  assert.match(details.error?.traceback ?? '', /RangeError: boom/)
})

test('an abort stops a running command, and its call gets a result', async (t) => {
  const provider = testProvider(() => ({
    calls: [{ tool: 'bash', args: { command: 'echo up; sleep 60' } }],
  }))
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'tool_started')
  const answer = await engine.abort(details.run_id)
  assert.equal(answer.already, false)
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const result = events.find((event) => event.kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result' && result.payload.exit_code === 130)
  assert.equal(last(events).status, 'aborted')
  assert.equal(last(events).end_reason, 'cancelled')
  assert.equal((await engine.abort(details.run_id)).already, true)
})

test('a run that has ended cannot be aborted', async (t) => {
  const { engine } = await openEngine(t)
  const { details } = await runToEnd(engine, { goal: 'shell: true' })
  await assert.rejects(engine.abort(details.run_id), {
    code: 'ERR_AGENT_RUN_STATE',
    problem: 'ended',
  })
})

test('runs in one folder work one by one, and do not hold up runs in other folders', async (t) => {
  const cwd = scratch(t)
  for (const name of ['a', 'b']) mkdirSync(join(cwd, name))
  const waits: (() => void)[] = []
  const provider = testProvider(
    () => new Promise<Said>((resolve) => waits.push(() => resolve({ stop: 'refusal' }))),
  )
  const { engine } = await openEngine(t, { cwd, providers: [provider] })
  const start = async (folder: string): Promise<string> =>
    (await engine.create({ goal: 'shell: false', cwd: join(cwd, folder) })).details.run_id
  const first = await start('a')
  const second = await start('a')
  const elsewhere = await start('b')
  await follow(engine, elsewhere, ({ kind }) => kind === 'step_start')
  assert.equal((await engine.get(second)).status, 'pending')
  await follow(engine, first, ({ kind }) => kind === 'step_start')
  assert.equal((await engine.get(second)).status, 'pending')
  waits.splice(0).forEach((go) => go())
  await follow(engine, second, ({ kind }) => kind === 'step_start')
  const [ended, started] = [await engine.get(first), await engine.get(second)]
  assert.ok((ended.ended_at ?? '9') <= (started.started_at ?? ''))
  waits.splice(0).forEach((go) => go())
  for (const id of [first, second, elsewhere]) assertInvariants(await follow(engine, id))
})

test('cwdPolicy reject refuses a second run in a folder, by the real path', async (t) => {
  const cwd = scratch(t)
  mkdirSync(join(cwd, 'a'))
  symlinkSync(join(cwd, 'a'), join(cwd, 'link'))
  const provider = testProvider(({ signal }) => untilAborted(signal))
  const { engine } = await openEngine(t, { cwd, providers: [provider], cwdPolicy: 'reject' })
  await engine.create({ goal: 'shell: false', cwd: join(cwd, 'a') })
  await assert.rejects(engine.create({ goal: 'shell: false', cwd: join(cwd, 'link') }), {
    code: 'ERR_AGENT_CWD_BUSY',
  })
})

test('a full queue refuses further runs', async (t) => {
  const cwd = scratch(t)
  for (const name of ['a', 'b', 'c']) mkdirSync(join(cwd, name))
  const provider = testProvider(({ signal }) => untilAborted(signal))
  const { engine } = await openEngine(t, {
    cwd,
    providers: [provider],
    maxConcurrentRuns: 1,
    maxQueuedRuns: 1,
  })
  const { details } = await engine.create({ goal: 'shell: false', cwd: join(cwd, 'a') })
  await follow(engine, details.run_id, ({ kind }) => kind === 'step_start')
  const queued = await engine.create({ goal: 'shell: false', cwd: join(cwd, 'b') })
  await assert.rejects(engine.create({ goal: 'shell: false', cwd: join(cwd, 'c') }), {
    code: 'ERR_AGENT_QUEUE_FULL',
  })
  await engine.abort(queued.details.run_id)
  const events = await follow(engine, queued.details.run_id)
  assertInvariants(events)
  assert.deepEqual(kinds(events), ['run_created', 'abort_requested', 'run_end'])
})

test('a tenant gets as many places in the queue as it leaves free', async (t) => {
  const { engine, cwd } = await openEngine(t, {
    providers: [testProvider(({ signal }) => untilAborted(signal))],
    maxConcurrentRuns: 1,
    maxQueuedRuns: 4,
    cwdPolicy: 'allow',
  })
  await assertPlacesOfTenants([engine], cwd)
})

for (const [name, request, pointer] of [
  ['no goal', {}, '/goal'],
  ['a blank goal', { goal: ' \n' }, '/goal'],
  ['an unknown field', { goal: 'shell: true', hitl_enable: true }, '/hitl_enable'],
  ['a wrong type', { goal: 'shell: true', max_iterations: '3' }, '/max_iterations'],
  ['too many iterations', { goal: 'shell: true', max_iterations: 1001 }, '/max_iterations'],
  ['a missing folder', { goal: 'shell: true', cwd: 'nowhere' }, '/cwd'],
  ['a folder outside the roots', { goal: 'shell: true', cwd: '/' }, '/cwd'],
  ['an unknown model', { goal: 'shell: true', model_name: 'nobody:x' }, '/model_name'],
  ['metadata that is not a string', { goal: 'shell: true', metadata: { a: 1 } }, '/metadata/a'],
] as const) {
  test(`a start request with ${name} is refused at ${pointer}`, async (t) => {
    const { engine } = await openEngine(t)
    await assert.rejects(engine.create(request as JsonObject), (error) => {
      assert.ok(error instanceof InvalidRequestError)
      assert.deepEqual(error.violations.map((violation) => violation.pointer), [pointer])
      return true
    })
    assert.deepEqual((await engine.list()).runs, [])
  })
}

test('a folder reached through a symlink that leaves the roots is refused', async (t) => {
  const [cwd, outside] = [scratch(t), scratch(t)]
  symlinkSync(outside, join(cwd, 'out'))
  const { engine } = await openEngine(t, { cwd })
  await assert.rejects(engine.create({ goal: 'shell: true', cwd: join(cwd, 'out') }), /outside/)
})

test('free text without a check is refused as not verifiable', async (t) => {
  const { engine } = await openEngine(t)
  await assert.rejects(engine.create({ goal: 'make it nice' }), {
    code: 'ERR_AGENT_GOAL',
    problem: 'not_verifiable',
    message: /give `check`, .*; with `check`, `model_name` must be a language model/,
  })
  const provider = testProvider(() => ({}))
  const { engine: other } = await openEngine(t, { providers: [provider], defaultModel: 'test:m' })
  await assert.rejects(other.create({ goal: 'make it nice' }), ({ message }: Error) => {
    return message.includes('give `check`') && !message.includes('model_name')
  })
})

const REPAIRS =
  'must be a language model for a goal in free text: builtin:repair only repairs what failing ' +
  'tests show. A goal that runs tests needs none, such as npm-test or shell: npm test'

for (const [what, request, options] of [
  ['a check that runs no tests', { goal: 'Make it nice.', check: 'grep -q nice a.txt' }, {}],
  ['a check that is a script without tests', { goal: 'Make it nice.', check: 'npm run lint' }, {}],
  ['a judge', { goal: 'Make it nice.' }, { judgeModel: 'test:m' }],
  [
    'a judge, and fallbacks of the same kind',
    { goal: 'Make it nice.', fallback_models: ['builtin:repair'] },
    { judgeModel: 'test:m' },
  ],
] as const) {
  test(`free text with ${what} is refused without a language model`, async (t) => {
    const cwd = scratch(t)
    writeFileSync(join(cwd, 'package.json'), '{"scripts":{"lint":"eslint .","test":"node --test"}}')
    const providers = [testProvider(() => ({}))]
    const defaultModel = 'builtin:repair'
    const { engine } = await openEngine(t, { cwd, providers, defaultModel, ...options })
    const refused = { violations: [{ pointer: '/model_name', detail: REPAIRS }] }
    await assert.rejects(engine.create(request), refused)
    await assert.rejects(engine.create({ ...request, model_name: 'builtin:repair' }), refused)
    const create = (more: JsonObject): Promise<unknown> => engine.create({ ...request, ...more })
    await create({ model_name: 'test:m' })
    await create({ fallback_models: ['test:m'] })
  })
}

for (const request of [
  { goal: 'Make the tests pass.', check: 'npm test' },
  { goal: 'Make the tests pass.', check: 'node --test' },
  { goal: 'shell: grep -q nice a.txt' },
  { goal: 'npm-test' },
]) {
  test(`builtin:repair takes ${JSON.stringify(request)}`, async (t) => {
    const cwd = scratch(t)
    writeFileSync(join(cwd, 'package.json'), '{"scripts":{"test":"node --test"}}')
    const { engine } = await openEngine(t, { cwd })
    const { details } = await engine.create(request)
    assert.equal(details.model_name, 'builtin:repair')
  })
}

for (const field of ['model_name', 'fallback_models', 'attempts'] as const) {
  test(`an unknown model in ${field} is refused with the one that may be meant`, async (t) => {
    const { engine } = await openEngine(t, { providers: [testProvider(() => ({}))] })
    const name = 'tset:m'
    const more = {
      model_name: { model_name: name },
      fallback_models: { fallback_models: [name] },
      attempts: { attempts: { count: 2, models: ['test:m', name] } },
    }[field]
    await assert.rejects(engine.create({ goal: 'shell: true', ...more }), (error) => {
      assert.ok(error instanceof InvalidRequestError)
      const [{ pointer, detail } = { pointer: '', detail: '' }] = error.violations
      assert.match(pointer, new RegExp(`^/${field}`))
      assert.match(detail, /there is no model "tset:m" .*builtin:repair; did you mean "test:m"\?$/)
      return true
    })
  })
}

for (const option of ['defaultModel', 'judgeModel'] as const) {
  test(`an unknown ${option} is refused at the start, with the one that may be meant`, async (t) => {
    const opening = openEngine(t, { [option]: 'bultin:repair' })
    await assert.rejects(opening, /no model "bultin:repair" .*; did you mean "builtin:repair"\?$/)
  })
}

test('a repeated key and request return the first run, even if sent concurrently', async (t) => {
  const [ours, theirs] = [scratch(t), scratch(t)]
  const roots = (owner: RunOwner | null): string[] => [owner?.tenant === 'b' ? theirs : ours]
  const { engine } = await openEngine(t, { roots })
  const answers = await Promise.all(
    [1, 2, 3].map(() =>
      engine.create({ goal: 'shell: true', max_iterations: 2 }, { idempotencyKey: 'k' }),
    ),
  )
  const again = await engine.create(
    { max_iterations: 2, goal: 'shell: true' },
    { idempotencyKey: 'k' },
  )
  assert.deepEqual(
    answers.map(({ created }) => created).sort(),
    [false, false, true],
    'whichever comes first',
  )
  assert.equal(again.created, false)
  assert.equal(new Set([...answers, again].map(({ details }) => details.run_id)).size, 1)
  await assert.rejects(engine.create({ goal: 'shell: false' }, { idempotencyKey: 'k' }), {
    code: 'ERR_AGENT_IDEMPOTENCY',
  })
  const other = { owner: { id: 'bob', tenant: null } }
  const ofAnother = await engine.create(
    { goal: 'shell: true' },
    { idempotencyKey: 'k', caller: other },
  )
  assert.equal(ofAnother.created, true)
  const elsewhere = { owner: { id: 'bob', tenant: 'b' } }
  const apart = await engine.create(
    { goal: 'shell: true' },
    { idempotencyKey: 'k', caller: elsewhere },
  )
  assert.equal(apart.created, true, 'a key of one tenant says nothing to another')
})

test('a retry of a run that an earlier version started has storable texts', async (t) => {
  const store = new MemoryStore()
  const { engine, cwd } = await openEngine(t, { store })
  const runId = '01930000-0000-7000-8000-00000000aaaa'
  const options = { goal: 'shell: true # \ud800', cwd, metadata: { 'a\0': '\udc80' } }
  await store.append(runId, sampleRun(runId, { ...options, modelName: 'builtin:repair' }))
  for (const started of [engine.retry(runId), engine.fork(runId, { workspace: 'in_place' })]) {
    const result = await started
    const { goal, metadata } = 'details' in result ? result.details : result
    assert.deepEqual([goal, metadata], ['shell: true # \ufffd', { 'a\ufffd': '\ufffd' }])
  }
})

test('an idempotency key with NUL or half of a character is refused', async (t) => {
  const { engine } = await openEngine(t)
  for (const idempotencyKey of ['a\0', '\ud800'])
    await assert.rejects(engine.create({ goal: 'shell: true' }, { idempotencyKey }), {
      code: 'ERR_AGENT_INVALID_REQUEST',
      message: /the idempotency key must not contain NUL or half of a character/,
    })
})

test('a retry starts the same request again, with parent_run_id', async (t) => {
  const { engine } = await openEngine(t)
  const { details } = await runToEnd(engine, {
    goal: 'shell: true',
    metadata: { a: 'b' },
    max_seconds: 9,
  })
  const again = await engine.retry(details.run_id)
  assert.equal(again.parent_run_id, details.run_id)
  assert.deepEqual(again.metadata, { a: 'b' })
  assert.equal(again.max_seconds, 9)
})

test('a deleted run is gone; a live run cannot be deleted', async (t) => {
  const provider = testProvider(() => ({ stop: 'refusal' }))
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false' })
  await assert.rejects(engine.delete(details.run_id), { problem: 'live' })
  await follow(engine, details.run_id)
  await engine.delete(details.run_id)
  await assert.rejects(engine.get(details.run_id), { code: 'ERR_AGENT_UNKNOWN_RUN' })
})

test('a run with a corrupt log cannot be read, but can be deleted', async (t) => {
  const store = new MemoryStore()
  const { engine } = await openEngine(t, { store })
  const { details } = await runToEnd(engine, { goal: 'shell: true' })
  const damaged = (): Promise<never> =>
    Promise.reject(new StoreError('ERR_AGENT_STORE_CORRUPT', `run ${details.run_id} is damaged`))
  store.head = damaged
  await assert.rejects(engine.get(details.run_id), { code: 'ERR_AGENT_STORE_CORRUPT' })
  const tenant = { owner: { id: 'ann', tenant: 'a' } }
  await assert.rejects(engine.delete(details.run_id, tenant), { code: 'ERR_AGENT_UNKNOWN_RUN' })
  await engine.delete(details.run_id)
  assert.deepEqual(await store.read(details.run_id, 0, 10), [])
})

test('a run is visible to its own tenant only', async (t) => {
  const { engine } = await openEngine(t)
  const ann = { owner: { id: 'ann', tenant: 'a' } }
  const bob = { owner: { id: 'bob', tenant: 'b' } }
  const { details } = await engine.create({ goal: 'shell: true' }, { caller: ann })
  assert.equal((await engine.get(details.run_id, ann)).run_id, details.run_id)
  for (const attempt of [
    () => engine.get(details.run_id, bob),
    () => engine.abort(details.run_id, bob),
    () => engine.resume(details.run_id, { decision: 'approve' }, bob),
    () => engine.retry(details.run_id, bob),
    () => engine.delete(details.run_id, bob),
    () => engine.subscribe(details.run_id, {}, bob),
    () => engine.events(details.run_id, { after: 0, limit: 1 }, bob),
  ]) {
    await assert.rejects(attempt, { code: 'ERR_AGENT_UNKNOWN_RUN' })
  }
})

test('private parts of records are never sent', async (t) => {
  const secret = { format: 'test', value: 'opaque-blob' }
  const provider = testProvider(() => ({ stop: 'refusal' }))
  const model = provider.create('m')
  const withParts = {
    ...provider,
    create: () => ({
      ...model,
      complete: async (request: Parameters<typeof model.complete>[0]) => {
        const turn = await model.complete(request)
        return { ...turn, message: { ...turn.message, parts: secret } }
      },
    }),
  }
  const { engine } = await openEngine(t, { providers: [withParts] })
  const { events } = await runToEnd(engine, { goal: 'shell: false' })
  assert.ok(!JSON.stringify(events).includes('opaque-blob'))
})

test("the host's environment does not reach a command", async (t) => {
  process.env['RUNWRIGHT_TEST_API_KEY'] = 'sk-very-secret'
  t.after(() => delete process.env['RUNWRIGHT_TEST_API_KEY'])
  const provider = testProvider((_, n) =>
    n === 0 ? { calls: [{ tool: 'bash', args: { command: 'env' } }] } : { stop: 'refusal' },
  )
  const { engine } = await openEngine(t, { providers: [provider] })
  const { events } = await runToEnd(engine, { goal: 'shell: false' })
  assert.ok(!JSON.stringify(events).includes('sk-very-secret'))
})

test('neither an abort nor a close waits for a model that ignores its signal', async (t) => {
  const cwd = scratch(t)
  for (const name of ['a', 'b']) mkdirSync(join(cwd, name))
  const { engine } = await openEngine(t, {
    cwd,
    providers: [testProvider(() => new Promise(() => undefined))],
  })
  const [one, two] = await Promise.all(
    ['a', 'b'].map(
      async (name) =>
        (await engine.create({ goal: 'shell: false', cwd: join(cwd, name) })).details.run_id,
    ),
  )
  for (const id of [one, two])
    await follow(engine, id as string, ({ kind }) => kind === 'step_start')
  await engine.abort(one as string)
  assertInvariants(await follow(engine, one as string))
  await engine.close()
})

test('a closing engine accepts no runs, and ends none', async (t) => {
  const store = new MemoryStore()
  const provider = testProvider(({ signal }) => untilAborted(signal))
  const { engine } = await openEngine(t, { store, providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false' })
  const reader = await engine.subscribe(details.run_id)
  await follow(engine, details.run_id, ({ kind }) => kind === 'step_start')
  assert.equal((await reader.next())?.[0]?.seq, 1)
  await engine.close()
  while ((await reader.next()) !== null);
  assert.equal(reader.end, 'shutdown')
  await assert.rejects(engine.create({ goal: 'shell: true' }), { code: 'ERR_AGENT_CLOSED' })
})

test('an invalid option is refused by name', async (t) => {
  const store = new MemoryStore()
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'f'), '')
  for (const [options, message] of [
    [{ roots: [] }, /roots/],
    [{ roots: [join(cwd, 'missing')] }, /roots/],
    [{ roots: [cwd], maxConcurrentRuns: 0 }, /maxConcurrentRuns/],
    [{ roots: [cwd], cwdPolicy: 'maybe' as 'allow' }, /cwdPolicy/],
    [{ roots: [cwd], defaultModel: 'nobody:x' }, /nobody/],
    [{ roots: [cwd], providers: [{ name: 'x' } as never] }, /provider's id must be/],
    [{ roots: [cwd], executor: {} as never }, /executor has no method run/],
  ] as const) {
    await assert.rejects(RunEngine.open({ store, ...options }), message)
  }
  assert.ok(existsSync(cwd))
})

test('processes left by a command are killed before the goal is checked', async (t) => {
  const command = 'setsid sleep 600 > /dev/null 2>&1 & echo $! > pid'
  const provider = testProvider((_, n) =>
    n === 0 ? { calls: [{ tool: 'bash', args: { command } }] } : {},
  )
  const { engine } = await openEngine(t, { providers: [provider] })
  // A zombie has an empty environment.
  const goal = 'shell: test -f pid && ! grep -qs RUNWRIGHT_RUN /proc/$(cat pid)/environ'
  const { details } = await runToEnd(engine, { goal, max_iterations: 1 })
  assert.equal(details.status, 'achieved')
})

test('a run whose steps never wait still yields, so it can be aborted', async (t) => {
  const lookup = {
    name: 'lookup',
    description: 'gives the value of a key',
    parameters: { type: 'object' },
    effect: 'read',
    execute: ({ key }: JsonObject) =>
      Promise.resolve({ output: `value of ${String(key)}`, exitCode: 0 }),
  } as const
  const { engine } = await openEngine(t, {
    providers: [testProvider((_, n) => ({ calls: [{ tool: 'lookup', args: { key: n } }] }))],
    tools: [lookup],
    maxTurnsPerIteration: 1,
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1000 })
  await follow(engine, details.run_id, ({ kind }) => kind === 'iteration_complete')
  await new Promise((resolve) => setImmediate(resolve))
  await engine.abort(details.run_id)
  const events = await follow(engine, details.run_id)
  assert.equal(last(events).end_reason, 'cancelled')
  assert.ok(last(events).iterations < 1000, `aborted after ${last(events).iterations} iterations`)
  assertInvariants(events)
})

test('what is no caller sees no run, and is not taken for the host', async (t) => {
  const { engine } = await openEngine(t)
  const { run_id } = (await engine.create({ goal: 'shell: true' })).details
  for (const caller of [
    null,
    'ann',
    {},
    { id: 'ann', tenant: 'a' },
    { owner: null },
    { owner: 'ann' },
    { owner: {} },
    { owner: { id: 'ann' } },
    { owner: { id: 'ann', tennant: 'a' } },
    { owner: { id: 'ann', tenant: 'a', tennant: 'a' } },
    { owner: { id: 'ann', tenant: 7 } },
    { owner: { id: 7, tenant: null } },
    { owner: { id: 'ann\0', tenant: null } },
    { owner: { id: 'ann', tenant: '\ud800' } },
  ] as any[]) {
    const calls: Record<string, () => Promise<unknown>> = {
      create: () => engine.create({ goal: 'shell: true' }, { caller }),
      get: () => engine.get(run_id, caller),
      events: () => engine.events(run_id, { after: 0, limit: 1 }, caller),
      subscribe: () => engine.subscribe(run_id, {}, caller),
      resume: () => engine.resume(run_id, { decision: 'approve' }, caller),
      retry: () => engine.retry(run_id, caller),
      abort: () => engine.abort(run_id, caller),
      delete: () => engine.delete(run_id, caller),
    }
    for (const [name, call] of Object.entries(calls)) {
      const isRefused = (error: Error): boolean =>
        error instanceof TypeError && /^caller\b/.test(error.message)
      await assert.rejects(call(), isRefused, `${name}: ${JSON.stringify(caller)}`)
    }
  }
  assert.equal((await engine.list()).runs.length, 1)
})
