/**
 * Runs that get messages, gates, aborts, forks and crashes at random, against a model of what was
 * accepted: each message is heard once, in order and never between a call and its result, or
 * reported as unheard; and a fork begins with the conversation that its source had.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  ModelError,
  RunEngine,
  type AgentEvent,
  type Message,
  type ModelRequest,
  type RunRecord,
} from 'runwright/agent'
import { loadState } from '../../../lib/agent/log/state.js'
import { scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { mortalClock, MortalProcess } from '../../helpers/mortal-process.js'
import { Random } from '../../helpers/random.js'
import { partedCalls } from '../crash/talk.js'

const RUNS = Number(process.env['RUNWRIGHT_RANDOM_RUNS'] ?? 60)
const MAX_CRASHES = 4
const MARK = 'Message from the user:\n\n'

/** What one run was sent, and what its model got. */
interface Sent {
  /** Texts of the messages that were accepted, or were in doubt when the process died. */
  readonly accepted: string[]
  readonly inDoubt: Set<string>
  /** The texts in each call of the model. */
  readonly calls: string[][]
}

test(`${RUNS} random runs hear each message once, or say that they did not`, async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const counts = { messages: 0, unheard: 0, crashes: 0, forks: 0 }
  for (let index = 0; index < RUNS; index++) {
    const random = new Random(seed * 1000 + index)
    for (let i = 0; i < 32; i++) random.next() // similar seeds begin with similar numbers
    await oneRun(t, random, counts).catch((cause: unknown) => {
      throw new Error(`seed ${seed}, run ${index}`, { cause })
    })
  }
  t.diagnostic(JSON.stringify(counts))
  if (RUNS < 60) return
  for (const [name, count] of Object.entries(counts)) assert.ok(count > 5, `${name}: ${count}`)
})

type Counts = { messages: number; unheard: number; crashes: number; forks: number }

async function oneRun(t: TestContext, random: Random, counts: Counts): Promise<void> {
  const cwd = scratch(t)
  const disk = new MemoryStore()
  await disk.open()
  const sent: Sent = { accepted: [], inDoubt: new Set(), calls: [] }
  let number = 0
  let runId = ''
  const say = (engine: RunEngine): void => {
    if (runId === '') return
    const text = `text ${(number += 1)}`
    const deliver = random.pick(['next_turn', 'next_turn', 'next_iteration'])
    const key = random.chance(0.3) ? { idempotencyKey: text } : {}
    sent.inDoubt.add(text)
    const send = (): Promise<unknown> => engine.message(runId, { text, deliver }, key)
    const twice = 'idempotencyKey' in key && random.chance(0.5)
    void Promise.all(twice ? [send(), send()] : [send()]).then(
      () => {
        sent.inDoubt.delete(text)
        sent.accepted.push(text)
      },
      (error: { problem?: string }) => {
        if (error.problem === 'ended') sent.inDoubt.delete(text)
      },
    )
  }
  const request = {
    goal: random.pick(['shell: grep -q 5 a', 'shell: false']),
    max_iterations: random.integer(1, 4),
    hitl_enabled: random.chance(0.4),
    approval: random.pick(['never', 'never', 'writes']),
  }
  for (let crashes = 0; ; crashes++) {
    const dieAt = crashes < MAX_CRASHES && random.chance(0.6) ? random.integer(1, 20) : 0
    const mortal = MortalProcess.ofAppends(t, disk, dieAt, random.chance(0.5))
    let engine: RunEngine | undefined
    const provider = testProvider(async (asked) => {
      if (!mortal.isDead) sent.calls.push(sentIn(asked.messages))
      if (random.chance(0.4)) say(engine!)
      if (random.chance(0.3)) await new Promise((resolve) => setImmediate(resolve))
      return randomTurn(random, asked)
    })
    engine = await RunEngine.open({
      store: mortal.store,
      roots: [cwd],
      sealedChecks: 'off',
      checkpoints: 'off',
      providers: [provider],
      defaultModel: 'test:m',
      clock: mortalClock(mortal.died),
      random: () => 0,
      maxTurnsPerIteration: random.integer(1, 3),
    })
    if (runId === '') {
      const made = engine.create(request).then(({ details }) => details.run_id)
      runId =
        (await Promise.race([made, mortal.died])) ??
        (await disk.list({ limit: 1 })).heads[0]?.details.run_id ??
        ''
      if (runId === '') continue
    }
    if (random.chance(0.5)) say(engine)
    const alive = await Promise.race([
      follow(engine, runId, random, say),
      mortal.died.then(() => false),
    ])
    if (!alive) {
      counts.crashes += 1
      continue
    }
    await new Promise((resolve) => setImmediate(resolve))
    await check(disk, runId, sent, counts)
    const last = await RunEngine.open({
      store: MortalProcess.ofAppends(t, disk, 0, false).store,
      roots: [cwd],
      sealedChecks: 'off',
      checkpoints: 'off',
      providers: [testProvider((asked) => randomTurn(random, asked))],
      defaultModel: 'test:m',
      random: () => 0,
    })
    await forkIt(last, disk, runId, random, counts)
    await Promise.all([engine.close(), last.close()])
    return
  }
}

async function check(
  disk: MemoryStore,
  runId: string,
  { accepted, inDoubt, calls }: Sent,
  counts: Counts,
): Promise<void> {
  const records = await disk.read(runId, 0, 100_000)
  assertInvariants(records)
  const textOf = new Map<string, string>()
  for (const { kind, payload } of records)
    if (kind === 'user_message') textOf.set(payload.message_id, payload.text)
  const stored = [...textOf.values()]
  assert.equal(new Set(stored).size, stored.length, 'nothing is stored twice')
  for (const text of accepted) assert.ok(stored.includes(text), `${text} was accepted`)
  for (const text of stored)
    assert.ok(accepted.includes(text) || inDoubt.has(text), `${text} was refused`)
  const end = records.find((record) => record.kind === 'run_end')
  const unheard = end?.kind === 'run_end' ? (end.payload.unheard ?? []) : []
  const heard = records.flatMap((record) =>
    record.kind === 'model_turn' ? (record.payload.heard ?? []) : [],
  )
  assert.deepEqual([...heard, ...unheard].sort(), [...textOf.keys()].sort())
  // The last call got what was heard by then, in the order of the turns.
  const said = heard.map((id) => textOf.get(id))
  const last = calls.at(-1) ?? []
  assert.deepEqual(last.slice(0, said.length), said.slice(0, last.length))
  assert.equal(new Set(last).size, last.length, 'the model gets nothing twice')
  counts.messages += stored.length
  counts.unheard += unheard.length
}

/** Forks the run at its end and compares what the fork begins with. */
async function forkIt(
  engine: RunEngine,
  disk: MemoryStore,
  runId: string,
  random: Random,
  counts: Counts,
): Promise<void> {
  const source = await loadState(disk, runId)
  const records = await disk.read(runId, 0, 100_000)
  const message = random.chance(0.5) ? { message: 'fork' } : {}
  const { details } = await engine.fork(runId, { workspace: 'in_place', ...message })
  if (random.chance(0.5)) await engine.delete(runId)
  for await (const batch of await engine.subscribe(details.run_id)) {
    for (const { json } of batch) {
      if ((JSON.parse(json) as AgentEvent).kind === 'human_check_required')
        void engine.abort(details.run_id).catch(() => undefined)
    }
  }
  const log = await disk.read(details.run_id, 0, 100_000)
  assertInvariants(log)
  const created = log[0]
  assert.ok(created?.kind === 'run_created')
  assert.deepEqual(created.private?.fork?.messages, source?.conversation.kept(Infinity))
  assert.deepEqual(partedCalls(created.private?.fork?.messages ?? []), [])
  const expected = [...unheardTexts(records), ...('message' in message ? ['fork'] : [])]
  assert.deepEqual((created.payload.messages ?? []).map(({ text }) => text), expected)
  counts.forks += 1
}

function unheardTexts(records: readonly RunRecord[]): string[] {
  const end = records.find((record) => record.kind === 'run_end')
  const ids = end?.kind === 'run_end' ? (end.payload.unheard ?? []) : []
  return ids.map((id) => {
    const found = records.find(
      (one) => one.kind === 'user_message' && one.payload.message_id === id,
    )
    return found?.kind === 'user_message' ? found.payload.text : ''
  })
}

function sentIn(messages: readonly Message[]): string[] {
  assert.deepEqual(partedCalls(messages), [], 'no message between a call and its result')
  return messages.flatMap((one) =>
    one.role === 'user' && one.text.startsWith(MARK) ? [one.text.slice(MARK.length)] : [],
  )
}

function randomTurn(random: Random, { messages }: ModelRequest): Said {
  const n = messages.length
  if (random.chance(0.05)) {
    const retryable = random.chance(0.6)
    const options = { retryable, modelMistake: !retryable, retryAfterMs: 1 }
    throw new ModelError('ERR_AGENT_MODEL', 'a random fault', options)
  }
  const calls = Array.from({ length: random.integer(0, 2) }, () =>
    random.pick([
      { tool: 'list_files', args: {} },
      { tool: 'write_file', args: { path: 'a', content: `${n}` } },
      { tool: 'nothing', args: {} },
    ]),
  )
  return { calls, tokens: [1, 1] }
}

/** Follows a run to its end, answers its gates, and speaks to it. */
async function follow(
  engine: RunEngine,
  runId: string,
  random: Random,
  say: (engine: RunEngine) => void,
): Promise<boolean> {
  const abortAt = random.chance(0.1) ? random.integer(1, 60) : 0
  for await (const batch of await engine.subscribe(runId)) {
    for (const { seq, json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      if (random.chance(0.08)) say(engine)
      if (seq === abortAt) void engine.abort(runId).catch(() => undefined)
      if (event.kind !== 'human_check_required') continue
      const { gate_id } = event.payload
      void engine.resume(runId, { decision: 'approve', gate_id }).catch(() => undefined)
      if (random.chance(0.3)) say(engine)
    }
  }
  return true
}
