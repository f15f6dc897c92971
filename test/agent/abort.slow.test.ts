import assert from 'node:assert/strict'
import { existsSync, readFileSync, watch } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  createHttpProvider,
  ModelError,
  openAiChatAdapter,
  type AgentEvent,
  type RunEngine,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { follow, openEngine, testProvider, type Said } from '../helpers/engine.js'
import { assertInvariants } from '../helpers/invariants.js'
import { listen } from '../helpers/serve.js'

const bash = (command: string): Said => ({ calls: [{ tool: 'bash', args: { command } }] })

/** Resolves once the file exists. */
async function present(folder: string, name: string): Promise<void> {
  const watcher = watch(folder)
  try {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (existsSync(join(folder, name))) resolve()
      }
      watcher.on('change', look)
      look()
    })
  } finally {
    watcher.close()
  }
}

/** Is a process with this id running? */
function lives(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Aborts a run and asserts that it ends as aborted. */
async function abort(engine: RunEngine, runId: string): Promise<AgentEvent[]> {
  await engine.abort(runId, { owner: { id: 'ann', tenant: null } })
  const events = await follow(engine, runId)
  assertInvariants(events)
  const details = await engine.get(runId)
  assert.deepEqual(
    [details.status, details.end_reason, details.error],
    ['aborted', 'cancelled', null],
  )
  const asked = events.filter((event) => event.kind === 'abort_requested')
  assert.deepEqual(asked.map(({ payload }) => payload), [{ by: 'ann' }])
  return events
}

test('an abort ends the HTTP request of a model call', async (t) => {
  let arrived: () => void = () => undefined
  let cut: () => void = () => undefined
  const asked = new Promise<void>((resolve) => (arrived = resolve))
  const closed = new Promise<void>((resolve) => (cut = resolve))
  const server = createServer((request, response) => {
    request.resume()
    response.on('close', cut)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': thinking\n\n', arrived)
  })
  const served = await listen(server)
  t.after(() => served.close())
  const provider = createHttpProvider(openAiChatAdapter(), {
    id: 'test',
    baseUrl: `${served.origin}/v1`,
  })
  t.after(() => provider.close())
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false' })
  await asked
  await abort(engine, details.run_id)
  await closed
})

for (const listens of [true, false]) {
  const does = listens ? 'listens to' : 'ignores'
  test(`an abort does not wait for a tool that ${does} its signal`, async (t) => {
    let begun: () => void = () => undefined
    const running = new Promise<void>((resolve) => (begun = resolve))
    let aborted = false
    const tool = {
      name: 'hang',
      description: 'never ends by itself',
      parameters: { type: 'object' },
      effect: 'unsafe',
      execute: (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true
            if (listens) reject(signal.reason as Error)
          })
          begun()
        }),
    } as const
    const { engine } = await openEngine(t, {
      providers: [testProvider(() => ({ calls: [{ tool: 'hang', args: {} }] }))],
      tools: [tool],
    })
    const { details } = await engine.create({ goal: 'shell: false' })
    await running
    const events = await abort(engine, details.run_id)
    assert.ok(aborted)
    const result = events.find((event) => event.kind === 'tool_result')
    assert.ok(result?.kind === 'tool_result' && result.payload.exit_code === 130)
  })
}

for (const { name, command } of [
  {
    name: 'a command and its children',
    command: 'sleep 600 & echo $! > child; echo $$ > pid; wait',
  },
  {
    name: 'a command that ignores SIGTERM',
    command: "trap '' TERM; sleep 600 & echo $! > child; echo $$ > pid; wait; wait; sleep 600",
  },
  {
    name: 'a child that left the process group',
    command: "setsid sh -c 'echo $$ > child; echo $$ > pid; exec sleep 600'",
  },
]) {
  test(`when an aborted run has ended, so have its processes: ${name}`, async (t) => {
    const { engine, cwd } = await openEngine(t, { providers: [testProvider(() => bash(command))] })
    const { details } = await engine.create({ goal: 'shell: false' })
    await present(cwd, 'pid')
    await abort(engine, details.run_id)
    for (const file of ['pid', 'child']) {
      assert.ok(
        !lives(Number(readFileSync(join(cwd, file), 'utf8'))),
        `the process of ${file} is gone`,
      )
    }
  })
}

test('an abort stops a running goal check', async (t) => {
  const { engine, cwd } = await openEngine(t)
  const { details } = await engine.create({ goal: 'shell: echo $$ > pid; sleep 600' })
  await present(cwd, 'pid')
  await abort(engine, details.run_id)
  assert.ok(!lives(Number(readFileSync(join(cwd, 'pid'), 'utf8'))))
})

test('an abort ends the wait between two attempts of a model call', async (t) => {
  const clock = new ManualClock()
  const provider = testProvider(() => {
    throw new ModelError('ERR_AGENT_MODEL', 'busy', { retryable: true, retryAfterMs: 60_000 })
  })
  const { engine } = await openEngine(t, { providers: [provider], clock })
  const { details } = await engine.create({ goal: 'shell: false' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'log')
  await clock.whenPending()
  await abort(engine, details.run_id)
  assert.equal(clock.pending, 0)
})

test('an abort at a gate ends the run without answering the gate', async (t) => {
  const provider = testProvider((_, n) => (n % 2 === 0 ? bash('true') : {}))
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false', hitl_enabled: true })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const events = await abort(engine, details.run_id)
  assert.ok(!events.some(({ kind }) => kind === 'human_check_response'))
  await assert.rejects(engine.resume(details.run_id, { decision: 'approve' }), {
    problem: 'not_waiting',
  })
})

async function hanging(t: TestContext): Promise<{ engine: RunEngine; first: string }> {
  const provider = testProvider(() => new Promise(() => undefined))
  const { engine } = await openEngine(t, { providers: [provider], maxConcurrentRuns: 1 })
  const { details } = await engine.create({ goal: 'shell: false' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'step_start')
  return { engine, first: details.run_id }
}

test('an abort ends the wait for a slot, and the queue continues', async (t) => {
  const { engine, first } = await hanging(t)
  const [second, third] = await Promise.all(
    [1, 2].map(async () => (await engine.create({ goal: 'shell: true' })).details.run_id),
  )
  await abort(engine, second as string)
  await abort(engine, first)
  await follow(engine, third as string)
  assert.equal((await engine.get(third as string)).status, 'achieved')
})

test('two aborts at the same time count as one', async (t) => {
  const { engine, first } = await hanging(t)
  const answers = await Promise.all([engine.abort(first), engine.abort(first)])
  const events = await follow(engine, first)
  assertInvariants(events)
  assert.equal(answers.length, 2)
  assert.equal(events.filter(({ kind }) => kind === 'run_end').length, 1)
})
