import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type AgentEvent, type JsonObject, type RunEngine } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import {
  follow, keepOpen, openEngine, scratch, testProvider, type Said,
} from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const write = (content: string): Said => ({
  calls: [{ tool: 'write_file', args: { path: 'a', content } }],
})
/** One write per iteration, then a turn without calls. */
const worker = testProvider((_, n) => (n % 2 === 0 ? write(`${n}`) : {}))

async function atGate(
  t: TestContext,
  request: JsonObject = {},
  options: Parameters<typeof openEngine>[1] = { providers: [worker] },
): Promise<{ engine: RunEngine; cwd: string; runId: string; gateId: string }> {
  const { engine, cwd } = await openEngine(t, options)
  const { details } = await engine.create({
    goal: 'shell: false',
    hitl_enabled: true,
    max_iterations: 3,
    ...request,
  })
  return { engine, cwd, runId: details.run_id, gateId: await gateOf(engine, details.run_id) }
}

/** Waits for the next open gate of a run. */
async function gateOf(engine: RunEngine, runId: string, after = 0): Promise<string> {
  for await (const batch of await engine.subscribe(runId, { after })) {
    for (const { json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      if (event.kind === 'human_check_required') return event.payload.gate_id
    }
  }
  throw new Error('the run ended without a gate')
}

test('a run with gates waits after each iteration, and continues when approved', async (t) => {
  const { engine, runId, gateId } = await atGate(t)
  const waiting = await engine.get(runId)
  assert.equal(waiting.status, 'awaiting_human')
  assert.equal(waiting.gate?.gate_id, gateId)
  assert.equal(waiting.gate?.kind, 'iteration')
  assert.match(waiting.gate?.summary ?? '', /Iteration 1 of 3/)
  assert.match(waiting.gate?.summary ?? '', /Files changed: a \(\+1\)\n/)
  const answer = await engine.resume(runId, { decision: 'approve' })
  assert.deepEqual(answer, {
    run_id: runId,
    status: 'running',
    decision: 'approve',
    gate_id: gateId,
  })
  const second = await gateOf(engine, runId, waiting.last_seq)
  assert.notEqual(second, gateId)
  await engine.resume(runId, { decision: 'approve', gate_id: second })
  const events = await follow(engine, runId)
  assertInvariants(events)
  // No gate after the last iteration.
  assert.equal(events.filter(({ kind }) => kind === 'human_check_required').length, 2)
  assert.equal((await engine.get(runId)).end_reason, 'max_iterations')
})

test('a change that was undone is not shown as a change', async (t) => {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'a'), 'old')
  const provider = testProvider((_, n) => [write('new'), write('old')][n] ?? {})
  const { engine, runId } = await atGate(t, {}, { cwd, providers: [provider] })
  const { gate } = await engine.get(runId)
  assert.match(gate?.summary ?? '', /No file changed/)
  assert.match(gate?.summary ?? '', /write_file 2 times/)
})

test('a summary escapes invisible and bidirectional characters', async (t) => {
  const path = 'photo\u202egpj.exe'
  const disguised = testProvider((_, n) => {
    if (n === 0) return { calls: [{ tool: 'write_file', args: { path, content: 'x' } }] }
    return n === 1
      ? { calls: [{ tool: 'bash', args: { command: 'true # \u2066ls\u2069\u200b \u{e0041}' } }] }
      : {}
  })
  const { engine, runId } = await atGate(t, {}, { providers: [disguised] })
  const { gate } = await engine.get(runId)
  assert.match(gate?.summary ?? '', /Files changed: photo\\u202egpj\.exe \(\+1\)/)
  assert.match(
    gate?.summary ?? '',
    /Commands: true # \\u2066ls\\u2069\\u200b \\u\{e0041\} \(exit code 0\)/,
  )
})

test('a summary does not turn a line break or an odd blank of a command into a space', async (t) => {
  const disguised = testProvider((_, n) => {
    const command = 'true # safe\nfalse\r\u00a0'
    return n === 0
      ? { calls: [{ tool: 'bash', args: { command } }, { tool: 'no\u202etool', args: {} }] }
      : {}
  })
  const { engine, runId } = await atGate(t, {}, { providers: [disguised] })
  const summary = (await engine.get(runId)).gate?.summary ?? ''
  assert.ok(summary.includes(String.raw`Commands: true # safe\nfalse\u000d\u00a0 (exit`), summary)
  assert.match(summary, /no\\u202etool once/)
})

test('abort at a gate ends the run, with the response in the log', async (t) => {
  const { engine, runId, gateId } = await atGate(t)
  const answer = await engine.resume(
    runId,
    { decision: 'abort', feedback: 'no' },
    { owner: { id: 'ann', tenant: null } },
  )
  assert.deepEqual(answer, { run_id: runId, status: 'aborted', decision: 'abort', gate_id: gateId })
  const events = await follow(engine, runId)
  assertInvariants(events)
  const response = events.at(-2)
  assert.ok(response?.kind === 'human_check_response')
  assert.deepEqual(response.payload, {
    decision: 'abort',
    gate_id: gateId,
    decided_by: 'ann',
    feedback: 'no',
  })
  assert.equal((await engine.get(runId)).end_reason, 'human_abort')
  assert.equal((await engine.resume(runId, { decision: 'abort' })).status, 'aborted')
})

test('no gate opens once the goal is met', async (t) => {
  const { engine } = await openEngine(t, { providers: [worker] })
  const { details } = await engine.create({ goal: 'shell: test -f a', hitl_enabled: true })
  const events = await follow(engine, details.run_id)
  assert.ok(!events.some(({ kind }) => kind === 'human_check_required'))
  assertInvariants(events)
})

test('feedback reaches the model as a user message', async (t) => {
  let received = ''
  const provider = testProvider((request, n) => {
    received = request.messages
      .map((message) => (message.role === 'user' ? message.text : ''))
      .join('\n')
    return n % 2 === 0 ? write(`${n}`) : {}
  })
  const { engine, runId } = await atGate(t, {}, { providers: [provider] })
  const { last_seq } = await engine.get(runId)
  await engine.resume(runId, { decision: 'approve', feedback: 'mind the umlauts' })
  await gateOf(engine, runId, last_seq)
  assert.match(received, /mind the umlauts/)
  await engine.abort(runId)
})

test('the first answer counts; repeating it is harmless, and another one is refused', async (t) => {
  const { engine, runId, gateId } = await atGate(t)
  const answers = await Promise.allSettled([
    engine.resume(runId, { decision: 'abort', gate_id: gateId }),
    engine.resume(runId, { decision: 'approve', gate_id: gateId }),
    engine.resume(runId, { decision: 'abort', gate_id: gateId }),
  ])
  assert.deepEqual(answers.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled'])
  assert.equal((answers[1] as PromiseRejectedResult).reason.problem, 'already_decided')
  const events = await follow(engine, runId)
  assert.equal(events.filter(({ kind }) => kind === 'human_check_response').length, 1)
})

for (const [name, answer, problem] of [
  ['an answer to a gate that is not open', { decision: 'approve', gate_id: 'other' }, 'stale_gate'],
] as const) {
  test(`${name} is refused as ${problem}`, async (t) => {
    const { engine, runId } = await atGate(t)
    await assert.rejects(engine.resume(runId, answer), { code: 'ERR_AGENT_RUN_STATE', problem })
    assert.equal((await engine.get(runId)).status, 'awaiting_human')
  })
}

test('a run that is not waiting at a gate refuses answers', async (t) => {
  const { engine } = await openEngine(t)
  const { details } = await engine.create({ goal: 'shell: true' })
  await follow(engine, details.run_id)
  await assert.rejects(engine.resume(details.run_id, { decision: 'approve' }), {
    problem: 'not_waiting',
  })
})

for (const [name, answer, pointer] of [
  ['without a decision', {}, '/decision'],
  ['with an unknown decision', { decision: 'yes' }, '/decision'],
  ['with reject at an iteration gate', { decision: 'reject' }, '/decision'],
  ['with an unknown field', { decision: 'approve', reason: 'x' }, '/reason'],
  ['with edits for an unknown call', { decision: 'approve', edits: { c9: {} } }, '/edits/c9'],
] as const) {
  test(`an answer ${name} is refused at ${pointer} and never approves`, async (t) => {
    const { engine, runId } = await atGate(t)
    await assert.rejects(engine.resume(runId, answer as never), (error: never) => {
      assert.deepEqual(
        (error as { violations: { pointer: string }[] }).violations.map((v) => v.pointer),
        [pointer],
      )
      return true
    })
    assert.equal((await engine.get(runId)).status, 'awaiting_human')
  })
}

test('an unanswered gate expires: the run is aborted, without a response in its log', async (t) => {
  const clock = new ManualClock(1_800_000_000_000)
  const { engine, runId } = await atGate(
    t,
    {},
    { providers: [worker], clock, gateTimeoutMs: 60_000 },
  )
  assert.equal(
    (await engine.get(runId)).gate?.deadline,
    new Date(clock.now() + 60_000).toISOString(),
  )
  clock.advance(60_001)
  const events = await follow(engine, runId)
  assertInvariants(events)
  assert.ok(!events.some(({ kind }) => kind === 'human_check_response'))
  assert.equal((await engine.get(runId)).end_reason, 'gate_timeout')
})

test('a run at a gate frees its slot for others', async (t) => {
  const { engine, runId, cwd } = await atGate(
    t,
    {},
    { providers: [worker], maxConcurrentRuns: 1, cwdPolicy: 'allow' },
  )
  const { details } = await engine.create({ goal: 'shell: true', cwd })
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).status, 'achieved')
  assert.equal((await engine.get(runId)).status, 'awaiting_human')
})

test('approval `writes` opens a gate before calls that write, but not before reads', async (t) => {
  const turn: Said = {
    calls: [
      { tool: 'list_files', args: {} },
      { tool: 'write_file', args: { path: 'done', content: '' }, call_id: 'w' },
    ],
  }
  const provider = testProvider((_, n) => (n === 0 ? turn : {}))
  const request = { goal: 'shell: test -f done', hitl_enabled: false, approval: 'writes' }
  const { engine, runId, cwd } = await atGate(t, request, { providers: [provider] })
  const { gate } = await engine.get(runId)
  assert.deepEqual(gate?.calls, [
    { call_id: 'w', tool: 'write_file', args: { path: 'done', content: '' } },
  ])
  assert.equal(existsSync(join(cwd, 'done')), false)
  await engine.resume(runId, { decision: 'approve' })
  const events = await follow(engine, runId)
  assertInvariants(events)
  assert.equal((await engine.get(runId)).status, 'achieved')
})

test('a rejected call does not run, and the model gets the reason', async (t) => {
  let received = ''
  const provider = testProvider((request, n) => {
    const message = request.messages.at(-1)
    if (message?.role === 'tool') received = `${message.exit_code} ${message.output}`
    return n === 0
      ? { calls: [{ tool: 'bash', args: { command: 'touch done' } }] }
      : { stop: 'refusal' }
  })
  const request = { hitl_enabled: false, approval: 'writes' }
  const { engine, runId, cwd } = await atGate(t, request, { providers: [provider] })
  await engine.resume(runId, { decision: 'reject', feedback: 'not like this' })
  assertInvariants(await follow(engine, runId))
  assert.equal(existsSync(join(cwd, 'done')), false)
  assert.match(received, /^126 .*not like this/)
})

test('a call runs with edited arguments; edits that violate the schema are refused', async (t) => {
  const provider = testProvider((_, n) =>
    n === 0 ? { calls: [{ tool: 'bash', args: { command: 'touch bad' }, call_id: 'b' }] } : {},
  )
  const request = { goal: 'shell: test -f good', hitl_enabled: false, approval: 'all' }
  const { engine, runId, cwd } = await atGate(t, request, { providers: [provider] })
  await assert.rejects(
    engine.resume(runId, { decision: 'approve', edits: { b: { args: { command: 7 } } } }),
    {
      code: 'ERR_AGENT_INVALID_REQUEST',
    },
  )
  await engine.resume(runId, {
    decision: 'approve',
    edits: { b: { args: { command: 'touch good' } } },
  })
  assertInvariants(await follow(engine, runId))
  assert.equal((await engine.get(runId)).status, 'achieved')
  assert.equal(existsSync(join(cwd, 'bad')), false)
})

test('a gate survives a restart of the engine and can be answered after it', async (t) => {
  const store = new MemoryStore()
  const first = await openEngine(t, { store: keepOpen(store), providers: [worker] })
  const { details } = await first.engine.create({
    goal: 'shell: false',
    hitl_enabled: true,
    max_iterations: 2,
  })
  const gateId = await gateOf(first.engine, details.run_id)
  await first.engine.close()
  const second = await openEngine(t, {
    store: keepOpen(store),
    cwd: first.cwd,
    providers: [worker],
  })
  const { gate, status } = await second.engine.get(details.run_id)
  assert.equal(status, 'awaiting_human')
  assert.equal(gate?.gate_id, gateId)
  await second.engine.resume(details.run_id, { decision: 'approve', gate_id: gateId })
  const events = await follow(second.engine, details.run_id)
  assertInvariants(events)
  assert.equal((await second.engine.get(details.run_id)).end_reason, 'max_iterations')
})

test('a deadline that passes while no process runs aborts the run at the next start', async (t) => {
  const clock = new ManualClock(1_800_000_000_000)
  const store = new MemoryStore()
  const first = await openEngine(t, {
    store: keepOpen(store),
    providers: [worker],
    clock,
    gateTimeoutMs: 60_000,
  })
  const { details } = await first.engine.create({
    goal: 'shell: false',
    hitl_enabled: true,
    max_iterations: 3,
  })
  await gateOf(first.engine, details.run_id)
  const { gate } = await first.engine.get(details.run_id)
  await first.engine.close()
  clock.advance(30_000)
  const second = await openEngine(t, {
    store: keepOpen(store),
    cwd: first.cwd,
    providers: [worker],
    clock,
    gateTimeoutMs: 60_000,
  })
  const again = await second.engine.get(details.run_id)
  assert.deepEqual(again.gate, gate, 'the gate and its deadline are as they were')
  await second.engine.close()
  clock.advance(30_001)
  const third = await openEngine(t, {
    store: keepOpen(store),
    cwd: first.cwd,
    providers: [worker],
    clock,
    gateTimeoutMs: 60_000,
  })
  const events = await follow(third.engine, details.run_id)
  assertInvariants(events)
  assert.ok(!events.some(({ kind }) => kind === 'human_check_response'))
  assert.equal((await third.engine.get(details.run_id)).end_reason, 'gate_timeout')
  await assert.rejects(third.engine.resume(details.run_id, { decision: 'approve' }), {
    problem: 'not_waiting',
  })
})

test('an answer at the last moment counts, and the deadline then has no effect', async (t) => {
  const clock = new ManualClock(1_800_000_000_000)
  const { engine, runId, gateId } = await atGate(
    t,
    { max_iterations: 2 },
    { providers: [worker], clock, gateTimeoutMs: 60_000 },
  )
  await clock.whenPending()
  clock.advance(59_999)
  await engine.resume(
    runId,
    { decision: 'approve', gate_id: gateId },
    { owner: { id: 'ann', tenant: null } },
  )
  clock.advance(60_000)
  const events = await follow(engine, runId)
  assertInvariants(events)
  const answers = events.flatMap((event) =>
    event.kind === 'human_check_response' ? [event.payload] : [],
  )
  assert.deepEqual(
    answers.map(({ decided_by, decision }) => [decided_by, decision]),
    [['ann', 'approve']],
  )
  assert.equal((await engine.get(runId)).end_reason, 'max_iterations')
})

const three: Said = {
  calls: ['a', 'b', 'c'].map((name) => ({
    tool: 'write_file',
    args: { path: name, content: 'model' },
    call_id: name,
  })),
}

test('an answer with other edits than the first is refused, as other calls would run', async (t) => {
  const provider = testProvider((_, n) => (n === 0 ? three : { stop: 'refusal' }))
  const request = { hitl_enabled: false, approval: 'writes' }
  const { engine, runId, gateId: gate_id } = await atGate(t, request, { providers: [provider] })
  const [b, c] = [{ args: { path: 'd', content: 'human' } }, { decision: 'reject' as const }]
  const answer = { decision: 'approve' as const, gate_id }
  await engine.resume(runId, { ...answer, edits: { b, c } })
  await follow(engine, runId)
  const again = { c, b: { args: { content: 'human', path: 'd' } } }
  assert.equal((await engine.resume(runId, { ...answer, edits: again })).gate_id, gate_id)
  for (const other of [{}, { edits: {} }, { edits: { b } }, { edits: { b, c: { args: {} } } }]) {
    await assert.rejects(engine.resume(runId, { ...answer, ...other }), {
      problem: 'already_decided',
      message: `gate ${gate_id} was already answered with approve, with edits`,
    })
  }
})

test('an empty list of edits repeats an answer without edits, and any other is refused', async (t) => {
  const provider = testProvider((_, n) => (n === 0 ? three : { stop: 'refusal' }))
  const request = { hitl_enabled: false, approval: 'writes' }
  const { engine, runId, gateId: gate_id } = await atGate(t, request, { providers: [provider] })
  const answer = { decision: 'approve' as const, gate_id }
  await engine.resume(runId, answer)
  await follow(engine, runId)
  await engine.resume(runId, { ...answer, edits: {} })
  const edits = { a: { decision: 'reject' as const } }
  await assert.rejects(engine.resume(runId, { ...answer, edits }), { problem: 'already_decided' })
})

test('each of the 128 calls that a turn may make is decided by itself', async (t) => {
  const calls = Array.from({ length: 128 }, (_, i) => ({
    tool: 'write_file', args: { path: `f${i}`, content: '' }, call_id: `c${i}`,
  }))
  const provider = testProvider((_, n) => (n === 0 ? { calls } : { stop: 'refusal' }))
  const request = { hitl_enabled: false, approval: 'writes' }
  const { engine, runId, cwd } = await atGate(t, request, { providers: [provider] })
  const edits = Object.fromEntries(
    calls.map(({ call_id }, i) => [call_id, i === 7 ? {} : { decision: 'reject' as const }]),
  )
  await engine.resume(runId, { decision: 'approve', edits })
  await follow(engine, runId)
  const written = calls.filter(({ args }) => existsSync(join(cwd, args.path)))
  assert.deepEqual(written.map(({ call_id }) => call_id), ['c7'])
})

for (const { name, answer, files, codes } of [
  {
    name: 'approve all but one call',
    answer: { decision: 'approve', edits: { b: { decision: 'reject', feedback: 'not this' } } },
    files: ['a', 'c'],
    codes: [0, 126, 0],
  },
  {
    name: 'reject all but one call',
    answer: { decision: 'reject', edits: { b: { decision: 'approve' } } },
    files: ['b'],
    codes: [126, 0, 126],
  },
  {
    name: 'reject all',
    answer: { decision: 'reject', feedback: 'no' },
    files: [],
    codes: [126, 126, 126],
  },
  {
    name: 'approve with other arguments for one call',
    answer: { decision: 'approve', edits: { c: { args: { path: 'd', content: 'human' } } } },
    files: ['a', 'b', 'd'],
    codes: [0, 0, 0],
  },
] as const) {
  test(`a gate for several calls is one gate, answered call by call: ${name}`, async (t) => {
    const provider = testProvider((_, n) => (n === 0 ? three : { stop: 'refusal' }))
    const { engine, runId, cwd } = await atGate(
      t,
      { hitl_enabled: false, approval: 'writes' },
      { providers: [provider] },
    )
    const { gate } = await engine.get(runId)
    assert.deepEqual(gate?.calls.map(({ call_id }) => call_id), ['a', 'b', 'c'])
    await engine.resume(runId, answer)
    const events = await follow(engine, runId)
    assertInvariants(events)
    assert.equal(events.filter(({ kind }) => kind === 'human_check_required').length, 1)
    const results = events.flatMap((event) =>
      event.kind === 'tool_result' ? [event.payload.exit_code] : [],
    )
    assert.deepEqual(results, codes)
    assert.deepEqual(['a', 'b', 'c', 'd'].filter((file) => existsSync(join(cwd, file))), files)
  })
}

test('an approval covers the calls of its gate, and no later ones', async (t) => {
  const same: Said = { calls: [{ tool: 'bash', args: { command: 'echo x >> ran' } }] }
  const provider = testProvider((_, n) => (n < 2 ? same : { stop: 'refusal' }))
  const { engine, runId, gateId } = await atGate(
    t,
    { hitl_enabled: false, approval: 'all' },
    { providers: [provider] },
  )
  const { last_seq } = await engine.get(runId)
  await engine.resume(runId, { decision: 'approve', gate_id: gateId })
  const second = await gateOf(engine, runId, last_seq)
  assert.notEqual(second, gateId)
  await assert.rejects(engine.resume(runId, { decision: 'reject', gate_id: gateId }), {
    problem: 'already_decided',
  })
  await engine.resume(runId, { decision: 'reject', gate_id: second })
  assertInvariants(await follow(engine, runId))
})

test('a summary lists changes, commands and usage in at most 2000 bytes', async (t) => {
  const content = 'ä'.repeat(50)
  const calls = [
    { tool: 'write_file', args: { path: 'new', content: `${content}\n${content}\n` } },
    { tool: 'bash', args: { command: `echo ${'🙂'.repeat(600)}; exit 3` } },
  ]
  const provider = testProvider((_, n) => (n === 0 ? { calls, tokens: [500, 20] } : {}))
  const { engine, runId } = await atGate(t, {}, { providers: [provider] })
  const { gate } = await engine.get(runId)
  const summary = gate?.summary ?? ''
  assert.match(summary, /Files changed: new \(\+2\)/)
  assert.match(summary, /Commands: echo .*… \(exit code 3\)/)
  assert.match(summary, /Used so far: 520 tokens, \$0\.0005/)
  assert.match(summary, /If you approve, the next iteration begins\./)
  assert.ok(Buffer.byteLength(summary) <= 2_000)
  assert.equal(summary, Buffer.from(summary).toString(), 'no character is cut in two')
})
