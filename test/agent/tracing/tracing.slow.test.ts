import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer } from 'node:http'
import { test, type TestContext } from 'node:test'
import {
  createHttpProvider,
  MemoryStore,
  ModelError,
  openAiChatAdapter,
  type AgentEvent,
  type ModelRequest,
  type Span,
  type SpanEvent,
  type Tracer,
} from 'runwright/agent'
import { follow, openEngine, runToEnd, testProvider, type Said } from '../../helpers/engine.js'
import { listen } from '../../helpers/serve.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const REMOTE = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01`, tracestate: 'congo=t61' }

/** A tracer that records its calls in order. */
class Notebook implements Tracer {
  readonly order: string[] = []
  readonly ended: Span[] = []
  readonly events: { readonly span: Span; readonly event: SpanEvent }[] = []

  startSpan(span: Span): undefined {
    this.order.push(`+ ${span.name}`)
  }

  addEvent(span: Span, event: SpanEvent): void {
    this.events.push({ span, event })
  }

  endSpan(span: Span): void {
    this.order.push(`- ${span.name}`)
    this.ended.push(span)
  }

  named(name: string): Span {
    const span = this.ended.find((one) => one.name === name)
    assert.ok(span !== undefined, `there is a span ${name} among ${this.order.join('; ')}`)
    return span
  }
}

const said: readonly Said[] = [
  { calls: [{ tool: 'bash', args: { command: 'touch done' }, call_id: 'b' }], tokens: [100, 20] },
  { text: 'there', tokens: [7, 1] },
]
const provider = testProvider((_, n) => said[n] ?? {})

test('a run is one span with iterations, model calls, tools and checks below it', async (t) => {
  const tracer = new Notebook()
  const { engine } = await openEngine(t, { providers: [provider], tracer })
  const { details } = await runToEnd(engine, { goal: 'shell: test -f done' })
  await engine.close()
  assert.deepEqual(tracer.order, [
    '+ invoke_agent runwright',
    '+ check shell',
    '- check shell',
    '+ iteration',
    '+ chat m',
    '- chat m',
    '+ execute_tool bash',
    '- execute_tool bash',
    '+ chat m',
    '- chat m',
    '+ check shell',
    '- check shell',
    '- iteration',
    '- invoke_agent runwright',
  ])
  const run = tracer.named('invoke_agent runwright')
  assert.equal(run.parent, null)
  assert.equal(run.kind, 'internal')
  assert.equal(run.context.traceparent.slice(3, 35), details.run_id.replaceAll('-', ''))
  assert.deepEqual(run.attributes, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'runwright',
    'gen_ai.provider.name': 'test',
    'gen_ai.request.model': 'm',
    'gen_ai.conversation.id': details.run_id,
    'runwright.goal': 'shell: test -f done',
    'runwright.resumed': false,
    'gen_ai.usage.input_tokens': 107,
    'gen_ai.usage.output_tokens': 21,
    'gen_ai.usage.cache_read.input_tokens': 0,
    'gen_ai.usage.reasoning.output_tokens': 0,
    'runwright.iterations': 1,
    'runwright.cost_usd': (107 + 42) / 1e6,
    'runwright.status': 'achieved',
    'runwright.end_reason': 'goal_achieved',
  })
  const chat = tracer.named('chat m')
  assert.equal(chat.kind, 'client')
  assert.equal(chat.parent?.name, 'iteration')
  assert.equal(chat.parent.parent, run)
  assert.deepEqual(chat.attributes, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'test',
    'gen_ai.request.model': 'm',
    'gen_ai.conversation.id': details.run_id,
    'runwright.attempt': 1,
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.cache_read.input_tokens': 0,
    'gen_ai.usage.reasoning.output_tokens': 0,
    'gen_ai.response.finish_reasons': ['tool_call'],
  })
  const tool = tracer.named('execute_tool bash')
  assert.equal(tool.attributes['gen_ai.tool.name'], 'bash')
  assert.equal(tool.attributes['gen_ai.tool.call.id'], 'b')
  assert.equal(tool.attributes['gen_ai.tool.type'], 'function')
  assert.equal(tool.attributes['runwright.exit_code'], 0)
  assert.equal(tool.status, 'unset')
  const results = tracer.events.map(({ event }) => [
    event.name,
    event.attributes['gen_ai.evaluation.score.label'],
  ])
  assert.deepEqual(results, [
    ['gen_ai.evaluation.result', 'fail'],
    ['gen_ai.evaluation.result', 'pass'],
  ])
  for (const { startedAt, endedAt } of tracer.ended)
    assert.ok(endedAt !== null && endedAt >= startedAt)
  const ids = tracer.ended.map(({ context }) => context.traceparent)
  assert.equal(new Set(ids).size, ids.length)
})

test('failures have an error type, and each attempt has its own span', async (t) => {
  const tracer = new Notebook()
  const failing = testProvider((_, n) => {
    if (n === 0)
      throw new ModelError('ERR_AGENT_MODEL', 'overloaded', { retryable: true, retryAfterMs: 1 })
    if (n === 1)
      return {
        calls: [
          { tool: 'bash', args: { command: 'exit 3' } },
          { tool: 'read_file', args: { path: 'no' } },
        ],
      }
    throw new ModelError('ERR_AGENT_MODEL_AUTH', 'refused', { retryable: false })
  })
  const { engine } = await openEngine(t, { providers: [failing], tracer, random: () => 0 })
  await runToEnd(engine, { goal: 'shell: false' })
  await engine.close()
  const chats = tracer.ended.filter(({ name }) => name === 'chat m')
  assert.deepEqual(
    chats.map(({ status, attributes }) => [
      attributes['runwright.attempt'],
      status,
      attributes['error.type'],
    ]),
    [
      [1, 'error', 'ERR_AGENT_MODEL'],
      [2, 'unset', undefined],
      [1, 'error', 'ERR_AGENT_MODEL_AUTH'],
    ],
  )
  // The exit code of a command is a result, not a failure.
  assert.equal(tracer.named('execute_tool bash').status, 'unset')
  assert.equal(tracer.named('execute_tool read_file').attributes['error.type'], 'tool_error')
  const run = tracer.named('invoke_agent runwright')
  assert.equal(run.attributes['error.type'], 'ERR_AGENT_MODEL_AUTH')
  assert.equal(run.statusMessage, 'refused')
})

test('a wait for a human is a span; a recovered run continues its trace', async (t) => {
  const store = new MemoryStore()
  store.close = () => Promise.resolve()
  const writes = testProvider((_, n) =>
    n % 2 === 0 ? { calls: [{ tool: 'write_file', args: { path: 'a', content: `${n}` } }] } : {},
  )
  const first = new Notebook()
  const one = await openEngine(t, { store, providers: [writes], tracer: first })
  const { details } = await one.engine.create(
    { goal: 'shell: false', hitl_enabled: true, max_iterations: 2 },
    { trace: REMOTE },
  )
  const runId = details.run_id
  await follow(one.engine, runId, ({ kind }) => kind === 'human_check_required')
  await one.engine.close()
  const second = new Notebook()
  const two = await openEngine(t, { store, cwd: one.cwd, providers: [writes], tracer: second })
  await two.engine.resume(runId, { decision: 'approve' })
  await follow(two.engine, runId)
  await two.engine.close()
  assert.equal(second.named('human_check').attributes['runwright.gate.decision'], 'approve')
  for (const notes of [first, second]) {
    const run = notes.named('invoke_agent runwright')
    assert.deepEqual(run.remoteParent, REMOTE)
    for (const { context } of notes.ended) {
      assert.equal(context.traceparent.slice(3, 35), TRACE)
      assert.equal(context.tracestate, 'congo=t61')
    }
  }
  assert.equal(second.named('invoke_agent runwright').attributes['runwright.resumed'], true)
})

/** A model over HTTP that answers each request with `stop` and records its headers. */
async function httpModel(t: TestContext): Promise<{
  readonly headers: NodeJS.Dict<string | string[]>[]
  readonly provider: ReturnType<typeof createHttpProvider>
}> {
  const headers: NodeJS.Dict<string | string[]>[] = []
  const server = createServer((request, response) => {
    headers.push(request.headers)
    request.resume()
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ choices: [{ message: { content: 'no' }, finish_reason: 'stop' }] }),
    )
  })
  const served = await listen(server)
  t.after(() => served.close())
  const baseUrl = `${served.origin}/v1`
  const made = createHttpProvider(openAiChatAdapter(), { id: 'test', baseUrl, stream: false })
  t.after(() => made.close())
  return { headers, provider: made }
}

test('a request to a model carries the context of its span', async (t) => {
  const { headers, provider } = await httpModel(t)
  const tracer = new Notebook()
  const { engine } = await openEngine(t, { providers: [provider], tracer })
  const { details } = await engine.create(
    { goal: 'shell: false', max_iterations: 2 },
    { trace: REMOTE },
  )
  await follow(engine, details.run_id)
  const chats = tracer.ended.filter(({ name }) => name === 'chat m')
  assert.equal(chats.length, 2)
  assert.deepEqual(
    headers.map(({ traceparent, tracestate }) => ({ traceparent, tracestate })),
    chats.map(({ context }) => context),
  )
})

test('without a tracer the context of the request is forwarded unchanged, if any', async (t) => {
  const { headers, provider } = await httpModel(t)
  const { engine } = await openEngine(t, { providers: [provider] })
  for (const trace of [REMOTE, undefined, { traceparent: 'nonsense', tracestate: 'a=1' }]) {
    const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 }, { trace })
    await follow(engine, details.run_id)
  }
  const [first, ...others] = headers
  assert.equal(first?.['traceparent'], REMOTE.traceparent)
  assert.equal(first['tracestate'], REMOTE.tracestate)
  for (const none of others) {
    assert.equal(none['traceparent'], undefined)
    assert.equal(none['tracestate'], undefined)
  }
})

test('a tracer that generates ids determines the trace of the run', async (t) => {
  let count = 0
  const requests: ModelRequest[] = []
  const seen: string[] = []
  const tracer: Tracer = {
    startSpan: (span) => {
      if (span.parent !== null) seen.push(span.parent.context.traceparent)
      count += 1
      return `00-${'a'.repeat(32)}-${count.toString(16).padStart(16, '0')}-01`
    },
    addEvent: () => undefined,
    endSpan: () => undefined,
  }
  const listening = testProvider((request) => {
    requests.push(request)
    return { stop: 'refusal' }
  })
  const { engine } = await openEngine(t, { providers: [listening], tracer })
  await runToEnd(engine, { goal: 'shell: false' })
  assert.match(requests[0]?.trace?.traceparent ?? '', /^00-a{32}-0{15}4-01$/)
  assert.ok(seen.every((traceparent) => traceparent.startsWith(`00-${'a'.repeat(32)}-`)))
})

test('a tracer that throws causes one warning, and the run continues without it', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const bad = (): never => {
    throw new Error('no exporter')
  }
  const tracer: Tracer = { startSpan: bad, addEvent: bad, endSpan: bad }
  const { engine } = await openEngine(t, { providers: [provider], tracer })
  const { details } = await runToEnd(engine, { goal: 'shell: true' })
  assert.equal(details.status, 'achieved')
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(warnings.filter((text) => text.includes('no exporter')).length, 1)
})

test('diagnostics channels publish spans and events, but only to subscribers', async (t) => {
  const { engine } = await openEngine(t, { providers: [testProvider((_, n) => said[n % 2] ?? {})] })
  const silent = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const spans: Span[] = []
  const events: AgentEvent[] = []
  const onSpan = (span: unknown): void => void spans.push(span as Span)
  const onEvent = (event: unknown): void => void events.push(event as AgentEvent)
  subscribe('runwright.span.end', onSpan)
  subscribe('runwright.event', onEvent)
  t.after(() => {
    unsubscribe('runwright.span.end', onSpan)
    unsubscribe('runwright.event', onEvent)
  })
  const heard = await runToEnd(engine, { goal: 'shell: true' })
  await engine.close()
  assert.deepEqual(spans.map(({ name }) => name), ['check shell', 'invoke_agent runwright'])
  assert.deepEqual(events, heard.events)
  assert.notEqual(silent.details.run_id, heard.details.run_id)
})

for (const jump of [5 * HOUR, -5 * HOUR]) {
  test(`spans take as long as they took, with the time of day set by ${jump / HOUR} h`, async (t) => {
    const tracer = new Notebook()
    const clock = new ShiftedClock()
    const began = clock.now()
    const provider = testProvider(() => {
      clock.shiftMs = jump
      clock.advance(1_000)
      return {}
    })
    const { engine } = await openEngine(t, { providers: [provider], tracer, clock })
    await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
    await engine.close()
    const run = tracer.named('invoke_agent runwright')
    assert.deepEqual([run.startedAt, run.endedAt], [began, began + 2_000])
    const chats = tracer.ended.filter(({ name }) => name.startsWith('chat'))
    const times = chats.map(({ startedAt, endedAt }) => [startedAt - began, endedAt! - began])
    assert.deepEqual(times, [[0, 1_000], [1_000, 2_000]])
  })
}
