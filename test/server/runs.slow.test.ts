import assert from 'node:assert/strict'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore } from 'runwright/agent'
import { bearerKeys } from 'runwright/server'
import { scratch } from '../helpers/engine.js'
import { openReal, shell, type Real } from './real.js'

/** Follows a run to its end over WebSocket. */
async function watch(real: Real, runId: string, query = ''): Promise<any[]> {
  using client = await real.socket(`/api/ws/${runId}${query}`)
  assert.equal(client.status, 101)
  const { events, code } = await client.rest()
  assert.equal(code, 1000)
  return events
}

/** Waits over WebSocket for an event of a kind. */
async function until(real: Real, runId: string, kind: string): Promise<any> {
  using client = await real.socket(`/api/ws/${runId}`)
  for (;;) {
    const event = await client.event()
    if (event.kind === kind) return event
  }
}

test('a run is started, followed to its end and read', async (t) => {
  const real = await openReal(t, { answer: (_, n) => (n === 0 ? shell('touch done') : {}) })
  const created = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: test -e done', metadata: { team: 'a' } },
  })
  assert.equal(created.status, 201)
  const runId: string = created.json.run_id
  assert.match(runId, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  assert.equal(created.headers.location, `/api/runs/${runId}`)
  assert.ok(['pending', 'running'].includes(created.json.status))
  assert.deepEqual(
    [
      created.json.max_iterations,
      created.json.hitl_enabled,
      created.json.cwd,
      created.json.error,
      created.json.metadata,
    ],
    [20, false, real.root, null, { team: 'a' }],
  )
  assert.deepEqual(created.json.final_state, {
    iteration: 0,
    goal_achieved: false,
    goal_reason: '',
    total_tokens: 0,
    estimated_cost_usd: 0,
  })
  const events = await watch(real, runId)
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, i) => i + 1),
  )
  for (const event of events) {
    assert.equal(event.run_id, runId)
    assert.deepEqual(Object.keys(event).sort(), [
      'iteration',
      'kind',
      'payload',
      'run_id',
      'seq',
      'ts',
    ])
  }
  const end = events.at(-1)
  assert.deepEqual([end.kind, end.payload.achieved, end.payload.iterations], ['run_end', true, 1])
  const details = (await real.call('GET', `/api/runs/${runId}`)).json
  assert.equal(details.status, 'achieved')
  assert.equal(details.final_state.goal_achieved, true)
  assert.equal(details.last_seq, events.length)
  assert.ok(existsSync(join(real.root, 'done')))
  const [summary] = (await real.call('GET', '/api/runs')).json
  assert.deepEqual(
    [summary.run_id, summary.goal, summary.status],
    [runId, 'shell: test -e done', 'achieved'],
  )
  const page = (await real.call('GET', `/api/runs/${runId}/events`)).json
  assert.deepEqual(page, events)
})

test('a gate is approved with feedback for the model, and the next one aborts', async (t) => {
  const heard: string[] = []
  const real = await openReal(t, {
    answer: ({ messages }, n) => {
      const last = messages.at(-1)
      if (last?.role === 'user') heard.push(last.text)
      return n % 2 === 0 ? shell('true') : {}
    },
  })
  const { json } = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: test -e never', hitl_enabled: true },
  })
  const path = `/api/runs/${json.run_id}`
  using client = await real.socket(
    `/api/ws/${json.run_id}?kinds=human_check_required,human_check_response,run_end`,
  )
  const first = await client.event()
  assert.equal(first.kind, 'human_check_required')
  assert.equal(first.payload.iteration, 1)
  const waiting = (await real.call('GET', path)).json
  assert.equal(waiting.status, 'awaiting_human')
  assert.equal(waiting.gate.gate_id, first.payload.gate_id)

  const approve = {
    decision: 'approve',
    gate_id: first.payload.gate_id,
    feedback: 'try harder please',
  }
  const approved = await real.call('POST', `${path}/resume`, { body: approve })
  assert.equal(approved.status, 200)
  assert.equal(approved.json.gate_id, first.payload.gate_id)
  assert.equal(approved.json.decision, 'approve')
  assert.equal((await client.event()).payload.decision, 'approve')
  const second = await client.event()
  assert.equal(second.payload.iteration, 2)
  assert.ok(heard.some((text) => text.includes('try harder please')))

  const again = await real.call('POST', `${path}/resume`, { body: approve })
  assert.equal(again.status, 200, 'the same answer to the same gate is harmless')
  const other = await real.call('POST', `${path}/resume`, {
    body: { ...approve, decision: 'abort' },
  })
  assert.deepEqual([other.status, other.json.code], [409, 'already_decided'])
  const stale = await real.call('POST', `${path}/resume`, {
    body: { decision: 'approve', gate_id: 'g-unknown' },
  })
  assert.deepEqual([stale.status, stale.json.code], [409, 'stale_gate'])
  const rejected = await real.call('POST', `${path}/resume`, { body: { decision: 'reject' } })
  assert.equal(rejected.status, 422, 'reject is known at tool gates only')

  const aborted = await real.call('POST', `${path}/resume`, { body: { decision: 'abort' } })
  assert.deepEqual([aborted.status, aborted.json.gate_id], [200, second.payload.gate_id])
  const { events, code } = await client.rest()
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['human_check_response', 'run_end'],
  )
  assert.equal(events[1].payload.end_reason, 'human_abort')
  assert.equal(code, 1000)
  const late = await real.call('POST', `${path}/resume`, { body: { decision: 'approve' } })
  assert.deepEqual([late.status, late.json.code], [409, 'not_waiting'])
})

test('of two concurrent answers to a gate only one counts', async (t) => {
  const real = await openReal(t)
  const { json } = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: false', hitl_enabled: true },
  })
  await until(real, json.run_id, 'human_check_required')
  const answers = await Promise.all(
    ['approve', 'abort'].map((decision) =>
      real.call('POST', `/api/runs/${json.run_id}/resume`, { body: { decision } }),
    ),
  )
  const won = answers.filter(({ status }) => status === 200)
  assert.equal(won.length, 1)
  assert.equal(answers.find(({ status }) => status !== 200)!.status, 409)
  const response = await until(real, json.run_id, 'human_check_response')
  assert.equal(response.payload.decision, won[0]!.json.decision)
  await real.call('POST', `/api/runs/${json.run_id}/abort`)
})

test('gates of tool calls accept reject and edited arguments', async (t) => {
  const real = await openReal(t, {
    answer: (_, n) => (n < 2 ? shell(`echo original > out${n}`) : {}),
  })
  const { json } = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: test -e never', approval: 'writes', max_iterations: 1 },
  })
  const path = `/api/runs/${json.run_id}`
  using client = await real.socket(
    `/api/ws/${json.run_id}?kinds=human_check_required,tool_result,run_end`,
  )
  const first = await client.event()
  assert.deepEqual([first.payload.kind, first.payload.calls[0].tool], ['tool', 'bash'])
  await real.call('POST', `${path}/resume`, { body: { decision: 'reject', feedback: 'not that' } })
  assert.equal((await client.event()).payload.exit_code, 126)
  const second = await client.event()
  const callId = second.payload.calls[0].call_id
  const edits = { [callId]: { args: { command: 'echo edited > out1' } } }
  const answer = await real.call('POST', `${path}/resume`, { body: { decision: 'approve', edits } })
  assert.equal(answer.status, 200, answer.text)
  assert.equal((await client.event()).payload.exit_code, 0)
  assert.equal((await client.event()).kind, 'run_end')
  assert.ok(!existsSync(join(real.root, 'out0')))
  assert.ok(existsSync(join(real.root, 'out1')))
})

test('abort can be repeated, and is refused for a run that ended otherwise', async (t) => {
  const real = await openReal(t, { answer: () => shell('sleep 600') })
  const { json } = await real.call('POST', '/api/runs', { body: { goal: 'shell: false' } })
  await until(real, json.run_id, 'tool_started')
  const aborted = await real.call('POST', `/api/runs/${json.run_id}/abort`)
  assert.equal(aborted.status, 202)
  const events = await watch(real, json.run_id)
  assert.deepEqual(
    [events.at(-1).payload.status, events.at(-1).payload.end_reason],
    ['aborted', 'cancelled'],
  )
  assert.equal(
    (await real.call('POST', `/api/runs/${json.run_id}/abort`, { body: {} })).status,
    200,
  )
  const done = (await real.call('POST', '/api/runs', { body: { goal: 'shell: true' } })).json.run_id
  await watch(real, done)
  const late = await real.call('POST', `/api/runs/${done}/abort`)
  assert.deepEqual([late.status, late.json.code], [409, 'run_ended'])
})

test('retry starts the same request as a new run that names its parent', async (t) => {
  const real = await openReal(t)
  const body = { goal: 'shell: true', max_iterations: 3, metadata: { a: 'b' } }
  const { json } = await real.call('POST', '/api/runs', { body })
  await watch(real, json.run_id)
  const again = await real.call('POST', `/api/runs/${json.run_id}/retry`)
  assert.equal(again.status, 201)
  assert.notEqual(again.json.run_id, json.run_id)
  assert.equal(again.json.parent_run_id, json.run_id)
  assert.deepEqual(
    [again.json.goal, again.json.max_iterations, again.json.metadata],
    ['shell: true', 3, { a: 'b' }],
  )
  assert.equal(again.headers.location, `/api/runs/${again.json.run_id}`)
})

test('an ended run is deleted for good', async (t) => {
  const real = await openReal(t)
  const { json } = await real.call('POST', '/api/runs', { body: { goal: 'shell: true' } })
  const path = `/api/runs/${json.run_id}`
  await watch(real, json.run_id)
  await real.call('GET', path)
  const removed = await real.call('DELETE', path)
  assert.deepEqual([removed.status, removed.text], [204, ''])
  assert.equal((await real.call('GET', path)).status, 404)
  assert.equal((await real.call('GET', `${path}/events`)).status, 404)
  assert.deepEqual((await real.call('GET', '/api/runs')).json, [])
})

test('an Idempotency-Key returns the first run, and is refused for another body', async (t) => {
  const real = await openReal(t)
  const send = (goal: string, key: string) =>
    real.call('POST', '/api/runs', { body: { goal }, headers: { 'idempotency-key': key } })
  const [first, second] = await Promise.all([send('shell: true', 'k1'), send('shell: true', 'k1')])
  assert.deepEqual([first.status, second.status].sort(), [200, 201])
  assert.equal(first.json.run_id, second.json.run_id)
  assert.equal(second.headers.location, `/api/runs/${first.json.run_id}`)
  const other = await send('shell: false', 'k1')
  assert.deepEqual([other.status, other.json.code], [422, 'idempotency_mismatch'])
  assert.equal((await send('shell: true', 'k2')).status, 201)
  assert.equal((await real.call('GET', '/api/runs')).json.length, 2)
})

test('the list is newest first unless sorted, filtered, and paged by Link', async (t) => {
  const real = await openReal(t)
  const ids: string[] = []
  for (let i = 0; i < 5; i++) {
    const goal = i % 2 === 0 ? 'shell: true' : 'shell: exit 0'
    const metadata = { ticket: `T-${i}`, 'team.lead': i < 2 ? 'a&b' : '' }
    const { json } = await real.call('POST', '/api/runs', { body: { goal, metadata } })
    ids.unshift(json.run_id)
    await watch(real, json.run_id)
  }
  const list = async (query: string): Promise<string[]> => {
    const { status, json, text } = await real.call('GET', `/api/runs${query}`)
    assert.equal(status, 200, text)
    return json.map((run: { run_id: string }) => run.run_id)
  }
  assert.deepEqual(await list(''), ids)
  assert.deepEqual(await list('?goal=shell:%20exit%200'), [ids[1], ids[3]])
  assert.deepEqual(await list('?status=achieved&status=failed'), ids)
  assert.deepEqual(await list('?status=failed'), [])
  assert.deepEqual(await list('?model_name=test:m'), ids)
  assert.deepEqual(await list('?model_name=other'), [])
  assert.deepEqual(await list('?search=TEST:M'), ids)
  assert.deepEqual(await list('?search=nowhere'), [])
  assert.deepEqual(await list('?created_after=2020-01-01T00:00:00Z'), ids)
  assert.deepEqual(await list('?created_before=2020-01-01T00:00:00%2B01:00'), [])
  assert.deepEqual(await list('?metadata.ticket=T-3'), [ids[1]])
  assert.deepEqual(await list('?metadata.team.lead=a%26b&sort=created_at'), [ids[4], ids[3]])
  assert.deepEqual(await list('?metadata.ticket=T-0&metadata.team.lead=a%26b'), [ids[4]])
  assert.deepEqual(await list('?metadata.ticket=T-0&metadata.team.lead='), [])
  assert.deepEqual(await list('?end_reason=goal_achieved&end_reason=stuck'), ids)
  assert.deepEqual(await list('?end_reason=stuck'), [])
  const cwd = encodeURIComponent(realpathSync(real.root))
  assert.deepEqual(await list(`?cwd=${cwd}&sort=-created_at`), ids)
  assert.deepEqual(await list('?cwd=/'), [])
  const { json } = await real.call('GET', '/api/runs?limit=1')
  assert.deepEqual(json[0].metadata, { ticket: 'T-4', 'team.lead': '' })
  for (const [query, expected] of [
    ['status=achieved', ids],
    ['sort=created_at', ids.toReversed()],
    ['sort=cwd', ids.toReversed()],
    ['sort=-end_reason&status=achieved', ids],
    ['sort=parent&role=root', ids.toReversed()],
    ['sort=created_at&metadata.team.lead=&end_reason=goal_achieved', ids.slice(0, 3).reverse()],
  ] as const) {
    const paged: string[] = []
    let next: string | undefined = `/api/runs?limit=2&${query}`
    let pages = 0
    while (next !== undefined) {
      const page: Awaited<ReturnType<typeof real.call>> = await real.call('GET', next)
      paged.push(...page.json.map((run: { run_id: string }) => run.run_id))
      pages += 1
      next = /^<(.*)>; rel="next"$/.exec(String(page.headers['link'] ?? ''))?.[1]
    }
    assert.deepEqual(paged, expected, query)
    assert.equal(pages, Math.ceil(expected.length / 2))
  }
})

test('details have an ETag, so an unchanged run is not sent again', async (t) => {
  const real = await openReal(t)
  const { json } = await real.call('POST', '/api/runs', { body: { goal: 'shell: true' } })
  await watch(real, json.run_id)
  const path = `/api/runs/${json.run_id}`
  const first = await real.call('GET', path)
  const tag = first.headers.etag!
  const same = await real.call('GET', path, { headers: { 'if-none-match': `"other", W/${tag}` } })
  assert.deepEqual([same.status, same.text, same.headers.etag], [304, '', tag])
  assert.equal(
    (await real.call('GET', path, { headers: { 'if-none-match': '"other"' } })).status,
    200,
  )
  assert.equal((await real.call('GET', path)).text, first.text)
})

test('a full queue is 429 with Retry-After, a busy folder 409 if so configured', async (t) => {
  const wait = shell('sleep 600')
  const full = await openReal(t, {
    answer: () => wait,
    engine: { maxConcurrentRuns: 1, maxQueuedRuns: 1, cwdPolicy: 'allow' },
  })
  const body = { goal: 'shell: false' }
  const first = await full.call('POST', '/api/runs', { body })
  await until(full, first.json.run_id, 'run_started')
  assert.equal((await full.call('POST', '/api/runs', { body })).status, 201)
  const third = await full.call('POST', '/api/runs', { body })
  assert.deepEqual([third.status, third.json.code], [429, 'queue_full'])
  assert.match(String(third.headers['retry-after']), /^\d+$/)
  const busy = await openReal(t, { answer: () => wait, engine: { cwdPolicy: 'reject' } })
  assert.equal((await busy.call('POST', '/api/runs', { body })).status, 201)
  const refused = await busy.call('POST', '/api/runs', { body })
  assert.deepEqual([refused.status, refused.json.code], [409, 'cwd_busy'])
})

test('tenants are separate, and answers are recorded with their author', async (t) => {
  const authorize = bearerKeys({
    ann: { key: 'ann-key-0123456789', tenant: 'a' },
    bob: { key: 'bob-key-0123456789', tenant: 'b' },
  })
  const real = await openReal(t, { service: { authorize } })
  const as = (who: string) => ({ headers: { authorization: `Bearer ${who}-key-0123456789` } })
  const { json } = await real.call('POST', '/api/runs', {
    ...as('ann'),
    body: { goal: 'shell: false', hitl_enabled: true },
  })
  using client = await real.socket(
    `/api/ws/${json.run_id}?kinds=human_check_required,human_check_response,run_end`,
    {
      Authorization: 'Bearer ann-key-0123456789',
    },
  )
  await client.event()
  assert.deepEqual((await real.call('GET', '/api/runs', as('bob'))).json, [])
  const foreign = await real.call('POST', `/api/runs/${json.run_id}/resume`, {
    ...as('bob'),
    body: { decision: 'approve' },
  })
  assert.equal(foreign.status, 404)
  await real.call('POST', `/api/runs/${json.run_id}/resume`, {
    ...as('ann'),
    body: { decision: 'abort' },
  })
  assert.equal((await client.event()).payload.decided_by, 'ann')
})

test('a gate survives a restart, and streams continue at their cursors', async (t) => {
  const data = scratch(t)
  const first = await openReal(t, { engine: { store: new FileStore({ directory: data }) } })
  const { json } = await first.call('POST', '/api/runs', {
    body: { goal: 'shell: false', hitl_enabled: true },
  })
  using before = await first.socket(`/api/ws/${json.run_id}`)
  const seen: number[] = []
  for (let kind = ''; kind !== 'human_check_required';) {
    const event = await before.event()
    seen.push(event.seq)
    kind = event.kind
  }
  const closing = first.service.close({ graceMs: 0 })
  const closed = await before.rest()
  seen.push(...closed.events.map(({ seq }) => seq))
  assert.equal(closed.code, 1001)
  before.peer.end()
  await closing
  assert.equal((await first.call('GET', '/api/runs')).json.code, 'draining')
  assert.equal((await first.call('GET', '/api/health')).status, 503)

  const second = await openReal(t, {
    engine: { store: new FileStore({ directory: data }), roots: [first.root] },
  })
  const path = `/api/runs/${json.run_id}`
  assert.equal((await second.call('GET', path)).json.status, 'awaiting_human')
  using after = await second.socket(`/api/ws/${json.run_id}?after=${seen.at(-1)}`)
  const answer = await second.call('POST', `${path}/resume`, { body: { decision: 'abort' } })
  assert.equal(answer.status, 200, answer.text)
  const { events, code } = await after.rest()
  assert.equal(code, 1000)
  const all = [...seen, ...events.map(({ seq }) => seq)]
  assert.deepEqual(
    all,
    all.map((_, i) => i + 1),
  )
  assert.equal(events.at(-1).kind, 'run_end')
})

test('while the service drains, live runs can be read and no new one is accepted', async (t) => {
  let finish = (): void => {}
  const held = new Promise<void>((resolve) => (finish = resolve))
  const real = await openReal(t, { answer: () => held.then(() => shell('touch done')) })
  const { json } = await real.call('POST', '/api/runs', { body: { goal: 'shell: test -e done' } })
  using client = await real.socket(`/api/ws/${json.run_id}`)
  for (let kind = ''; kind !== 'step_start';) kind = (await client.event()).kind
  const closing = real.service.close({ graceMs: 60_000 })
  const refused = await real.call('POST', '/api/runs', { body: { goal: 'shell: true' } })
  assert.deepEqual([refused.status, refused.json.code], [503, 'draining'])
  assert.match(String(refused.headers['retry-after']), /^\d+$/)
  assert.equal((await real.call('POST', `/api/runs/${json.run_id}/retry`)).status, 503)
  const health = await real.call('GET', '/api/health')
  assert.deepEqual([health.status, health.json.status], [503, 'draining'])
  assert.equal((await real.call('GET', `/api/runs/${json.run_id}`)).json.status, 'running')
  finish()
  const { events, code } = await client.rest()
  assert.deepEqual(
    [events.at(-1).kind, events.at(-1).payload.achieved, code],
    ['run_end', true, 1000],
  )
  client.peer.end()
  await closing
})

test('models and goals of the host are listed', async (t) => {
  const real = await openReal(t)
  const models: { name: string; default: boolean; is_language_model: boolean }[] = (
    await real.call('GET', '/api/models')
  ).json
  assert.equal(models.filter((model) => model.default).length, 1)
  assert.ok(
    models.some(({ name, is_language_model }) => name === 'builtin:repair' && !is_language_model),
  )
  const goals: { name: string; usage: string }[] = (await real.call('GET', '/api/goals')).json
  assert.ok(goals.some(({ name }) => name === 'node-test'))
})

test('the trace of a request reaches the model calls of its run, and of a retry', async (t) => {
  const traces: unknown[] = []
  const real = await openReal(t, {
    answer: ({ trace }) => {
      traces.push(trace)
      return { stop: 'refusal' }
    },
  })
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const headers = { traceparent, tracestate: 'congo=t61' }
  const { json } = await real.call('POST', '/api/runs', { body: { goal: 'shell: false' }, headers })
  await watch(real, json.run_id)
  const again = await real.call('POST', `/api/runs/${json.run_id}/retry`, {
    headers: { traceparent: traceparent.replace(/01$/, '00'), 'content-type': 'application/json' },
  })
  assert.equal(again.status, 201)
  await watch(real, again.json.run_id)
  const bad = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: false' },
    headers: { ...headers, traceparent: 'who knows' },
  })
  assert.equal(bad.status, 201)
  await watch(real, bad.json.run_id)
  assert.deepEqual(traces, [
    headers,
    { traceparent: traceparent.replace(/01$/, '00'), tracestate: null },
    undefined,
  ])
})

test('a relative cwd begins at the first root, and leads out of none', async (t) => {
  const real = await openReal(t)
  mkdirSync(join(real.root, 'app/sub'), { recursive: true })
  const start = async (cwd: string): Promise<{ status: number; json: any }> =>
    await real.call('POST', '/api/runs', { body: { goal: 'shell: true', cwd } })
  const root = realpathSync(real.root)
  for (const [cwd, path] of [['app', '/app'], ['./app/sub/', '/app/sub'], ['.', '']] as const) {
    const { status, json } = await start(cwd)
    assert.equal(status, 201, JSON.stringify(json))
    assert.equal(json.cwd, `${root}${path}`)
    await watch(real, json.run_id)
  }
  for (const cwd of ['..', 'app/../../x', 'missing']) {
    const { status, json } = await start(cwd)
    assert.equal(status, 422, cwd)
    assert.equal(json.errors[0].pointer, '/cwd')
  }
})
