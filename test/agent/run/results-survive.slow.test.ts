/** Results of runs that are killed, aborted, bounded, repeated or parts of trees. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  checkSchema,
  defineTool,
  MemoryStore,
  ModelError,
  NO_USAGE,
  RunEngine,
  type DelegateResult,
  type JsonObject,
  type JsonSchema,
  type ModelRequest,
  type RunRecord,
} from 'runwright/agent'
import {
  follow, keepOpen, openEngine, payloads, runToEnd, type Said, scratch, testProvider,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { mortalClock, MortalProcess } from '../../helpers/mortal-process.js'
import { Random } from '../../helpers/random.js'
import { filesIn, writeFiles } from '../../helpers/files.js'
import { openFamily, type Brain } from './children/support.js'

const SCHEMA = {
  type: 'object',
  properties: { total: { type: 'number', minimum: 0 }, word: { type: 'string' } },
  required: ['total'],
  additionalProperties: false,
} satisfies JsonSchema
const VALID = { total: 12.5 }
const NONE = { goal: 'result: read the invoice', workspace: 'none', result_schema: SCHEMA }
const CHECKED = { goal: 'shell: test -f done', result_schema: SCHEMA }
const asks = ({ result }: ModelRequest): boolean => result !== undefined

function giving(args: JsonObject, tokens: Said['tokens'] = [10, 5]): Said {
  return { calls: [{ tool: 'give_result', args }], tokens: tokens! }
}

const write: Said = { calls: [{ tool: 'write_file', args: { path: 'done', content: '' } }] }

/** Its first answer is not valid, its second is. */
function answer(request: ModelRequest): Said {
  const { messages, run } = request
  if (!asks(request)) return run.turn === 0 && run.cwd !== '' ? write : { text: 'Read.' }
  const given = messages.filter(
    (one) => one.role === 'assistant' && one.calls.some(({ tool }) => tool === 'give_result'),
  )
  return giving(given.length === 0 ? { total: -1 } : VALID)
}

for (const [name, request] of [['without a folder', NONE], ['with a check', CHECKED]] as const)
  test(`a run ${name} can be killed at any append: no answer is lost or asked for twice`, async (t) => {
    for (const keepsLast of [true, false]) {
      for (let dieAt = 2; ; dieAt++) {
        const disk = new MemoryStore()
        await disk.open()
        const cwd = scratch(t)
        let asked = 0
        let lives = 0
        const open = async (mortal: MortalProcess): Promise<RunEngine> => {
          lives += 1
          return await RunEngine.open({
            store: mortal.store, roots: [cwd], sealedChecks: 'off', checkpoints: 'off',
            providers: [testProvider((given) => {
              if (asks(given) && !mortal.isDead) asked += 1
              return answer(given)
            })],
            defaultModel: 'test:m', clock: mortalClock(mortal.died), random: () => 0,
          })
        }
        const first = MortalProcess.ofAppends(t, disk, dieAt, keepsLast)
        const engine = await open(first)
        const { details } = await engine.create(request)
        const runId = details.run_id
        const ended = follow(engine, runId).then(() => true)
        ended.catch(() => undefined)
        const isAlive = await Promise.race([ended, first.died.then(() => false)])
        if (!isAlive) {
          const last = await open(MortalProcess.ofAppends(t, disk, 0, false))
          await follow(last, runId)
          await last.close()
        }
        const records = await disk.read(runId, 0, 10_000)
        assertInvariants(records)
        const results = records.filter((record) => record.kind === 'result')
        assert.deepEqual(results.map(({ payload }) => payload.attempt), [1, 2])
        assert.deepEqual(results.at(-1)?.payload.result, VALID)
        const answers = records.filter(
          (record) => record.kind === 'model_turn' && record.payload.gives_result === true,
        )
        assert.equal(answers.length, 2, 'each answer is in the log once')
        assert.ok(asked <= 2 + lives - 1, `${asked} calls in ${lives} lives`)
        const end = records.at(-1)
        assert.ok(end?.kind === 'run_end' && end.payload.status === 'achieved')
        if (isAlive) {
          await engine.close()
          break
        }
      }
    }
  })

test('a run that is suspended while it asks goes on with the next start', async (t) => {
  const disk = new MemoryStore()
  const cwd = scratch(t)
  let release: () => void = () => undefined
  const asking = new Promise<void>((resolve) => (release = resolve))
  const waits = testProvider((request) => {
    if (!asks(request)) return { text: 'Read.' }
    release()
    return new Promise<Said>(() => undefined)
  })
  const options = { store: keepOpen(disk), cwd }
  const { engine } = await openEngine(t, { ...options, providers: [waits] })
  const { details } = await engine.create(NONE)
  await asking
  await engine.close()
  const { engine: next } = await openEngine(t, { ...options, providers: [testProvider(answer)] })
  assertInvariants(await follow(next, details.run_id))
  assert.deepEqual((await next.get(details.run_id)).result, VALID)
})

test('an abort while the result is asked for ends the run', async (t) => {
  let release: () => void = () => undefined
  const asking = new Promise<void>((resolve) => (release = resolve))
  const provider = testProvider((request) => {
    if (!asks(request)) return { text: 'Read.' }
    release()
    return new Promise<Said>(() => undefined)
  })
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await engine.create(NONE)
  await asking
  await engine.abort(details.run_id)
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const after = await engine.get(details.run_id)
  assert.equal(after.status, 'aborted')
  assert.equal(after.result, null)
  assert.equal(after.answer, 'Read.')
})

const budgets = [
  { name: 'before the first request', budget: 100, asked: 0 },
  { name: 'after a wrong answer', budget: 120, asked: 1 },
] as const
for (const { name, budget, asked } of budgets)
  for (const base of [NONE, CHECKED])
    test(`a budget that is used up ${name} ends the run of ${base.goal}`, async (t) => {
      let count = 0
      const provider = testProvider((request) => {
        if (asks(request)) {
          count += 1
          return giving({ total: -1 }, [20, 0])
        }
        if (request.run.turn > 0) return { text: 'Done.' }
        return { ...(request.run.cwd === '' ? { text: 'Read.' } : write), tokens: [100, 0] }
      })
      const { engine } = await openEngine(t, { providers: [provider] })
      const request = { ...base, max_total_tokens: budget }
      const { details, events } = await runToEnd(engine, request)
      assertInvariants(events)
      assert.equal(details.status, 'failed')
      assert.equal(details.end_reason, 'token_budget')
      assert.equal(count, asked)
      assert.equal(details.result, null)
    })

test('a run that has made all calls that it may make still gives its result', async (t) => {
  const pay = defineTool({
    name: 'pay', description: 'pays', parameters: { type: 'object', properties: {} },
    execute: () => Promise.resolve('paid'),
  })
  let fails = 1
  const provider = testProvider((request) => {
    if (!asks(request)) return { calls: [{ tool: 'pay', args: {} }] }
    if (fails-- > 0) {
      const usage = { ...NO_USAGE, input_tokens: 5 }
      throw new ModelError('ERR_AGENT_MODEL', 'busy', { retryable: true, retryAfterMs: 1, usage })
    }
    return giving(VALID)
  })
  const { engine } = await openEngine(t, { providers: [provider], tools: [pay], random: () => 0 })
  const { details, events } = await runToEnd(engine, { ...NONE, max_tool_calls: 2 })
  assertInvariants(events)
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.equal(details.usage.tool_calls, 2)
  assert.deepEqual(details.result, VALID)
})

test('the answers count in tokens, calls and costs', async (t) => {
  const { engine } = await openEngine(t, { providers: [testProvider(answer)] })
  const { details, events } = await runToEnd(engine, NONE)
  assert.equal(details.usage.model_calls, 3)
  assert.equal(details.final_state.total_tokens, 30)
  assert.equal(details.final_state.estimated_cost_usd, (20 * 1 + 10 * 2) / 1e6)
  const usage = payloads(events, 'llm_usage')
  assert.deepEqual(usage.map(({ purpose }) => purpose), ['worker', 'worker', 'worker'])
})

test('a secret is redacted before a result is checked, stored and shown', async (t) => {
  const secret = 'hunter22-of-the-results'
  const provider = testProvider((request) =>
    asks(request)
      ? giving({ total: 1, word: `the key is ${secret}` })
      : { text: `It is ${secret}` },
  )
  const { engine } = await openEngine(t, { providers: [provider], secrets: [secret] })
  const { details, events } = await runToEnd(engine, NONE)
  assert.equal(details.status, 'achieved')
  assert.ok(!JSON.stringify([details, events]).includes(secret))
  assert.deepEqual(details.result, { total: 1, word: 'the key is [secret removed]' })
  assert.equal(details.answer, 'It is [secret removed]')
  const strict = { ...SCHEMA, properties: { total: true, word: { pattern: '^the key is hunter' } } }
  const failed = await runToEnd(engine, { ...NONE, result_schema: strict })
  assert.equal(failed.details.end_reason, 'result_invalid', 'what is shown matches the schema')
})

test('gates do not open for the request for the result, and open for other calls', async (t) => {
  const own = defineTool({
    name: 'pay', description: 'pays', parameters: { type: 'object', properties: {} },
    execute: () => Promise.resolve('paid'),
  })
  const provider = testProvider((request) => {
    if (asks(request)) return giving(VALID)
    return request.run.turn === 0 ? { calls: [{ tool: 'pay', args: {} }] } : { text: 'Paid.' }
  })
  const { engine } = await openEngine(t, { providers: [provider], tools: [own] })
  const { details } = await engine.create({ ...NONE, approval: 'all', hitl_enabled: true })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const { gate } = await engine.get(details.run_id)
  assert.deepEqual(gate?.calls.map(({ tool }) => tool), ['pay'])
  await engine.resume(details.run_id, { decision: 'approve' })
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  assert.equal(payloads(events, 'human_check_required').length, 1)
  assert.deepEqual((await engine.get(details.run_id)).result, VALID)
})

test('a run that is created again, forked or replayed asks again', async (t) => {
  let asked = 0
  const provider = testProvider((request) => {
    if (!asks(request)) return { text: 'Read.' }
    asked += 1
    return giving({ total: asked })
  })
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await runToEnd(engine, NONE)
  const again = await engine.retry(details.run_id)
  await follow(engine, again.run_id)
  const retried = await engine.get(again.run_id)
  assert.deepEqual(retried.result, { total: 2 })
  assert.deepEqual(retried.result_schema, SCHEMA)
  assert.equal(retried.workspace, 'none')
  const other = { type: 'object', properties: { total: { type: 'integer' } } }
  for (const given of [{}, { message: 'Once more.' }, { result_schema: other }]) {
    const fork = await engine.fork(details.run_id, given)
    const events = await follow(engine, fork.details.run_id)
    assertInvariants(events)
    const forked = await engine.get(fork.details.run_id)
    assert.equal(forked.status, 'achieved', JSON.stringify(given))
    assert.deepEqual(forked.result, { total: asked })
    assert.deepEqual(forked.result_schema, 'result_schema' in given ? other : SCHEMA)
    assert.equal(forked.workspace, 'none')
  }
  await assert.rejects(
    engine.fork(details.run_id, { workspace: 'isolated' }), /must be none, or left out/,
  )
  const replay = await runToEnd(engine, { ...NONE, model_name: `replay:${details.run_id}` })
  assert.deepEqual(replay.details.result, { total: 1 })
})

test('the result of the attempt that wins is that of its run; one without does not win', async (t) => {
  const brain = (result: JsonObject): Brain => (request, turn) =>
    asks(request)
      ? giving(result)
      : turn === 0
        ? { calls: [{ tool: 'write_file', args: { path: 'done', content: '' } }] }
        : { text: `I give ${JSON.stringify(result)}.` }
  const { engine, cwd } = await openFamily(t, {
    wrong: brain({ total: 'none' }), right: brain({ total: 2 }),
  })
  writeFiles(cwd, { 'start.txt': '' })
  const attempts = { count: 2, models: ['test:wrong', 'test:right'], choose: 'smallest' }
  const { details, events } = await runToEnd(engine, { ...CHECKED, attempts })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.equal(details.attempts?.chosen, 2)
  assert.deepEqual(details.result, { total: 2 })
  assert.equal(details.answer, 'I give {"total":2}.')
  assert.deepEqual(payloads(events, 'attempt_chosen')[0]?.result, { total: 2 })
  assert.deepEqual(payloads(events, 'attempt_ended').map(({ end_reason }) => end_reason).sort(), [
    'goal_achieved', 'result_invalid',
  ])
})

test('attempts at a result may change nothing', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    m: (request) => (asks(request) ? giving({ total: 3 }) : { text: 'Read.' }),
  })
  writeFiles(cwd, { 'start.txt': 'x' })
  const request = { goal: 'result: look', result_schema: SCHEMA, attempts: { count: 2 } }
  const { details } = await runToEnd(engine, request)
  assert.equal(details.status, 'achieved', JSON.stringify(details.error))
  assert.deepEqual(details.result, { total: 3 })
  assert.deepEqual(filesIn(cwd), { 'start.txt': 'x' })
})

test('a run that a tool starts gives its result to the tool, also after a crash', async (t) => {
  const seen: DelegateResult[] = []
  const work = defineTool({
    name: 'work', description: 'works', parameters: { type: 'object', properties: {} },
    execute: async (_, { startRun }) => {
      const done = await startRun({ goal: 'result: look', result_schema: SCHEMA })
      seen.push(done)
      return JSON.stringify(done.result)
    },
  })
  const brain: Brain = (request, turn) => {
    if (asks(request)) return giving({ total: 4 })
    const isChild = request.run.goal === 'result: look'
    return !isChild && turn === 0 ? { calls: [{ tool: 'work', args: {} }] } : { text: 'Looked.' }
  }
  const { engine } = await openFamily(t, { m: brain }, { tools: [work] })
  const { events } = await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, delegation: { depth: 1, children: 2 },
  })
  const [result] = payloads(events, 'tool_result')
  assert.equal(result?.output, '{"total":4}')
  assert.equal(seen[0]?.answer, 'Looked.')
})

test('the tool delegate passes on the result and the last text', async (t) => {
  const brain: Brain = (request, turn) => {
    if (asks(request)) return giving({ total: 5 })
    const isChild = request.run.goal === 'result: look'
    const args = { goal: 'result: look', result_schema: SCHEMA }
    return !isChild && turn === 0 ? { calls: [{ tool: 'delegate', args }] } : { text: 'Looked.' }
  }
  const { engine } = await openFamily(t, { m: brain })
  const { events } = await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, delegation: { depth: 1, children: 2 },
  })
  const [result] = payloads(events, 'tool_result')
  assert.match(result?.output ?? '', /Its result: \{"total":5\}\nIt said at last: Looked\./)
})

/** A schema, and values of which some match it. */
function randomSchema(random: Random): { schema: JsonSchema; value: () => JsonObject } {
  const names = ['a', 'b', 'c'].slice(0, random.integer(1, 3))
  const kinds = names.map(() => random.pick(['number', 'string', 'boolean'] as const))
  const schema: JsonSchema = {
    type: 'object',
    properties: Object.fromEntries(names.map((name, i) => [name, { type: kinds[i]! }])),
    required: names.filter(() => random.chance(0.5)),
    additionalProperties: random.chance(0.5),
  }
  const values = { number: 1, string: 'x', boolean: true }
  const value = (): JsonObject =>
    Object.fromEntries(
      [...names, 'd'].flatMap((name, i) => {
        if (random.chance(0.3)) return []
        const kind = random.chance(0.8) ? (kinds[i] ?? 'number') : random.pick(['number', 'string'])
        return [[name, values[kind as keyof typeof values]]]
      }),
    )
  return { schema, value }
}

test('a run is achieved exactly if one of three answers matches, and shows the first of those', async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const random = new Random(seed)
  let answers: JsonObject[] = []
  let next = 0
  const provider = testProvider((request) => {
    if (!asks(request)) return { text: 'Read.' }
    const args = answers[next++]!
    return random.chance(0.5) ? giving(args) : { text: JSON.stringify(args) }
  })
  const { engine } = await openEngine(t, { providers: [provider] })
  const counts = { achieved: 0, failed: 0 }
  for (let n = 0; n < 80; n++) {
    const { schema, value } = randomSchema(random)
    answers = [value(), value(), value()]
    next = 0
    const request = { ...NONE, result_schema: schema as JsonObject }
    const { details, events } = await runToEnd(engine, request)
    assertInvariants(events)
    const first = answers.find((one) => checkSchema(schema, one).length === 0)
    assert.deepEqual(details.result, first ?? null, `seed ${seed}, run ${n}`)
    assert.equal(details.status, first === undefined ? 'failed' : 'achieved')
    counts[details.status as 'achieved'] += 1
  }
  assert.ok(counts.achieved > 5 && counts.failed > 5, JSON.stringify(counts))
})

test('records of runs with results have format 4; those without keep theirs', async (t) => {
  const store = new MemoryStore()
  const { engine } = await openEngine(t, { store, providers: [testProvider(answer)] })
  const versions = async (request: JsonObject): Promise<RunRecord['v'][]> => {
    const { details } = await runToEnd(engine, request)
    return (await store.read(details.run_id, 0, 1)).map(({ v }) => v)
  }
  assert.deepEqual(await versions(NONE), [4])
  assert.deepEqual(await versions(CHECKED), [4])
  assert.deepEqual(await versions({ goal: CHECKED.goal }), [1])
})

async function refused(
  t: TestContext,
  request: JsonObject,
  fields: readonly string[],
): Promise<void> {
  const providers = [testProvider(answer)]
  const { engine } = await openEngine(t, { providers, judgeModel: 'test:m' })
  await assert.rejects(engine.create(request), (error: Error & { violations?: unknown }) => {
    const violations = (error.violations ?? []) as readonly { pointer: string }[]
    assert.deepEqual(violations.map(({ pointer }) => pointer), fields, error.message)
    return true
  })
}

const nested = (depth: number): JsonObject => {
  let schema: JsonObject = { type: 'string' }
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { a: schema } }
  return schema
}
const hostile: readonly (readonly [string, unknown, string?])[] = [
  ['no object', 'x'],
  ['another type at its root', { type: 'string' }, '/result_schema/type'],
  ['no type at its root', { properties: {} }, '/result_schema/type'],
  ['too many levels', nested(100)],
  ['200 000 levels', JSON.parse(`{"type":"object","x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`)],
  ['too many bytes', { type: 'object', description: 'x'.repeat(40_000) }],
  ['an unknown type', { type: 'object', properties: { a: { type: 'text' } } }],
  ['a pattern that is none', { type: 'object', properties: { a: { pattern: '(' } } }],
  ['a pattern with a reference back', { type: 'object', properties: { a: { pattern: '(a)\\1' } } }],
  ['a reference to itself', { type: 'object', properties: { a: { $ref: '#/properties/a' } } }],
  ['a reference to another document', { type: 'object', properties: { a: { $ref: 'http://x/y' } } }],
  ['$dynamicRef', { type: 'object', $dynamicRef: '#a' }],
  ['a field __proto__', JSON.parse('{"type":"object","properties":{"__proto__":{}}}')],
]
for (const [what, schema, field = '/result_schema'] of hostile)
  test(`a schema with ${what} is refused at once`, async (t) => {
    await refused(t, { ...NONE, result_schema: schema as JsonObject }, [field])
  })

test('a schema that is costly to check costs a bounded time, and its answers are invalid', async (t) => {
  const level = (n: number): JsonObject => ({
    anyOf: [{ $ref: `#/$defs/l${n + 1}` }, { $ref: `#/$defs/l${n + 1}` }],
  })
  const $defs: Record<string, JsonObject> = { l25: { type: 'null' } }
  for (let n = 0; n < 25; n++) $defs[`l${n}`] = level(n)
  const evil: JsonObject = {
    type: 'object', $defs,
    properties: { a: { $ref: '#/$defs/l0' }, b: { type: 'string', pattern: '^(a+)+$' } },
  }
  const provider = testProvider((request) =>
    asks(request) ? giving({ a: 1, b: `${'a'.repeat(50_000)}!` }) : { text: 'Read.' },
  )
  const { engine } = await openEngine(t, { providers: [provider] })
  const began = performance.now()
  const { details } = await runToEnd(engine, { ...NONE, result_schema: evil })
  assert.equal(details.end_reason, 'result_invalid')
  assert.ok(performance.now() - began < 20_000, 'without a bound it would take for ever')
})

const misuse: readonly (readonly [string, JsonObject, readonly string[]])[] = [
  ['a result goal without a schema', { goal: 'result: x' }, ['/result_schema']],
  ['no folder for a command', { goal: 'shell: true', workspace: 'none' }, ['/workspace']],
  ['no folder for a judged goal', { goal: 'Be kind.', workspace: 'none' }, ['/workspace']],
  ['no folder, and a folder', { ...NONE, cwd: '/tmp' }, ['/cwd']],
  ['no folder, and attempts', { ...NONE, attempts: { count: 2 } }, ['/attempts']],
  ['no folder, and delegation', { ...NONE, delegation: {} }, ['/delegation']],
  ['no folder, and apply', { ...NONE, apply: 'manual' }, ['/apply']],
  ['no folder, and no checkpoints', { ...NONE, checkpoints: 'off' }, ['/checkpoints']],
  ['no folder, and sealed checks', { ...NONE, sealed_checks: 'prefer' }, ['/sealed_checks']],
  ['no folder, and a tool for files', { ...NONE, tools: ['read_file'] }, ['/tools/0']],
]
for (const [what, request, fields] of misuse)
  test(`${what} is refused by the name of the field`, (t) => refused(t, request, fields))

test('a run without a folder has the own tools of its host, which find none', async (t) => {
  writeFileSync(join(scratch(t), 'x'), '')
  const outputs: string[] = []
  const look = defineTool({
    name: 'look', description: 'looks', parameters: { type: 'object', properties: {} },
    execute: async (_, { run, workspace }) => {
      const read = await workspace.readFile('x').catch((error: Error) => error.message)
      const ran = await run('true').catch((error: Error) => error.message)
      outputs.push(workspace.root, String(read), String(ran))
      return 'looked'
    },
  })
  let offered: readonly string[] = []
  const provider = testProvider((request) => {
    if (asks(request)) return giving(VALID)
    offered = request.tools.map(({ name }) => name)
    return request.run.turn === 0 ? { calls: [{ tool: 'look', args: {} }] } : { text: 'Looked.' }
  })
  const { engine } = await openEngine(t, {
    providers: [provider], tools: [look], checkpoints: 'auto',
  })
  const { details } = await runToEnd(engine, NONE)
  assert.equal(details.status, 'achieved', JSON.stringify(details.error))
  assert.deepEqual(offered, ['look'])
  const message = 'this run has no folder: it can neither use files nor run commands'
  assert.deepEqual(outputs, ['', message, message])
  const { workspaces } = engine
  const id = details.run_id
  assert.deepEqual(await workspaces.checkpoints(id), [])
  assert.match((await workspaces.changes(id)).note ?? '', /has no folder/)
  const none = /has no folder/
  await assert.rejects(workspaces.changes(id, { to: 'now' }).then(({ note }) => {
    throw new Error(note ?? '')
  }), none)
  await assert.rejects(workspaces.list(id), none)
  await assert.rejects(workspaces.read(id, 'x', { raw: false }), none)
  await assert.rejects(workspaces.restore(id, { checkpoint_id: 'a'.repeat(64) }), none)
  await assert.rejects(workspaces.apply(id, {}), none)
  await assert.rejects(workspaces.discard(id), none)
})

test('runs without a folder work at the same time, whatever the policy for folders', async (t) => {
  let both: () => void = () => undefined
  const met = new Promise<void>((resolve) => (both = resolve))
  let working = 0
  const provider = testProvider(async (request) => {
    if (asks(request)) return giving(VALID)
    if (++working === 2) both()
    await met
    return { text: 'Read.' }
  })
  const { engine } = await openEngine(t, { providers: [provider], cwdPolicy: 'reject' })
  const runs = await Promise.all([engine.create(NONE), engine.create(NONE)])
  for (const { details } of runs) {
    await follow(engine, details.run_id)
    assert.equal((await engine.get(details.run_id)).status, 'achieved')
  }
})
