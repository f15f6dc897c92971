import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  ModelError,
  RunEngine,
  type AgentEvent,
  type ModelRequest,
  type Tool,
} from 'runwright/agent'
import { scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { mortalClock, MortalProcess } from '../../helpers/mortal-process.js'
import { Random } from '../../helpers/random.js'

const RUNS = Number(process.env['RUNWRIGHT_RANDOM_RUNS'] ?? 60)
/** Most crashes of one run: one more than it may recover from. */
const MAX_CRASHES = 4

function randomTurn(random: Random, request: ModelRequest): Said {
  const n = request.messages.length
  if (random.chance(0.05)) {
    const retryable = random.chance(0.8)
    throw new ModelError('ERR_AGENT_MODEL', 'a random fault', {
      retryable,
      modelMistake: !retryable,
      retryAfterMs: 1,
    })
  }
  const calls = Array.from({ length: random.integer(0, 3) }, () =>
    random.pick([
      { tool: 'list_files', args: {} },
      { tool: 'write_file', args: { path: random.pick(['a', 'b']), content: `${n}` } },
      { tool: 'edit_file', args: { path: 'a', old_text: `${n - 2}`, new_text: 'x' } },
      { tool: 'nothing', args: {} },
      { tool: 'once', args: { n } },
    ]),
  )
  return { calls, tokens: [random.integer(0, 50), random.integer(0, 9)] }
}

test(`${RUNS} random runs keep every invariant even if their process dies`, async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const ends: Record<string, number> = {}
  let crashes = 0
  for (let index = 0; index < RUNS; index++) {
    const random = new Random(seed * 1000 + index)
    for (let i = 0; i < 32; i++) random.next() // similar seeds begin with similar numbers
    const context = `seed ${seed}, run ${index}`
    const { end, times } = await oneRun(t, random).catch((cause: unknown) => {
      throw new Error(context, { cause })
    })
    crashes += times
    ends[end] = (ends[end] ?? 0) + 1
  }
  t.diagnostic(JSON.stringify({ ...ends, crashes }))
  assert.ok(RUNS < 60 || crashes > RUNS / 3, `${crashes} crashes`)
})

async function oneRun(
  t: TestContext,
  random: Random,
): Promise<{ readonly end: string; readonly times: number }> {
  const cwd = scratch(t)
  const disk = new MemoryStore()
  await disk.open()
  const ran = new Map<string, number>()
  const once: Tool = {
    name: 'once',
    description: 'must not run twice for one call',
    parameters: { type: 'object' },
    effect: 'unsafe',
    execute: (_, { callId }) => {
      ran.set(callId, (ran.get(callId) ?? 0) + 1)
      return Promise.resolve({ output: 'ok', exitCode: random.integer(0, 1) })
    },
  }
  const request = {
    goal: random.pick(['shell: grep -q 5 a', 'shell: false']),
    max_iterations: random.integer(1, 5),
    hitl_enabled: random.chance(0.4),
    approval: random.pick(['never', 'writes', 'all']),
    ...(random.chance(0.3) && { max_tool_calls: random.integer(1, 8) }),
  }
  const seen: AgentEvent[] = []
  let runId = ''
  for (let crashes = 0; ; crashes++) {
    const dieAt = crashes < MAX_CRASHES && random.chance(0.6) ? random.integer(1, 20) : 0
    const mortal = MortalProcess.ofAppends(t, disk, dieAt, random.chance(0.5))
    const open = RunEngine.open({
      store: mortal.store,
      roots: [cwd],
      sealedChecks: 'off',
      providers: [testProvider((asked) => randomTurn(random, asked))],
      defaultModel: 'test:m',
      tools: [once],
      clock: mortalClock(mortal.died),
      random: () => 0,
      maxTurnsPerIteration: random.integer(1, 3),
    })
    const engine = await open
    if (runId === '') {
      const made = engine.create(request).then(({ details }) => details.run_id)
      runId =
        (await Promise.race([made, mortal.died])) ??
        (await disk.list({ limit: 1 })).heads[0]?.details.run_id ??
        ''
      if (runId === '') continue
    }
    const alive = await Promise.race([
      follow(engine, runId, seen, random),
      mortal.died.then(() => false),
    ])
    if (!alive) continue
    await engine.close()
    const records = await disk.read(runId, 0, 100_000)
    assertInvariants(records)
    for (const [callId, times] of ran) assert.equal(times, 1, `call ${callId} ran ${times} times`)
    const { details } = (await disk.head(runId)) ?? assert.fail()
    const recoveries = records.filter(({ kind }) => kind === 'run_recovered').length
    assert.ok(recoveries <= crashes)
    return { end: `${details.status} ${details.end_reason}`, times: crashes }
  }
}

/** Follows a run to its end, answers its gates, and compares with what earlier readers got. */
async function follow(
  engine: RunEngine,
  runId: string,
  seen: AgentEvent[],
  random: Random,
): Promise<boolean> {
  let position = 0
  const abortAt = random.chance(0.1) ? random.integer(1, 60) : 0
  for await (const batch of await engine.subscribe(runId)) {
    for (const { seq, json } of batch) {
      if (seq === null) continue
      const event = JSON.parse(json) as AgentEvent
      position += 1
      assert.equal(seq, position)
      if (position > seen.length) seen.push(event)
      else assert.deepEqual(event, seen[position - 1], 'published events never change')
      if (seq === abortAt) void engine.abort(runId).catch(() => undefined)
      if (event.kind !== 'human_check_required') continue
      const { kind, gate_id } = event.payload
      const decision = random.pick(
        kind === 'tool' ? (['approve', 'reject'] as const) : (['approve'] as const),
      )
      void engine.resume(runId, { decision, gate_id }).catch(() => undefined)
    }
  }
  return true
}
