/**
 * A process that dies at any write around a compaction: the next one sends the model the same
 * messages; and what the log says is enough to know what was sent.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  RunEngine,
  type AgentEvent,
  type Message,
  type ModelRequest,
  type RunRecord,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { dueMessages } from '../../../lib/agent/log/messages.js'
import { foldState } from '../../../lib/agent/log/state.js'
import type { RunState } from '../../../lib/agent/log/run-state.js'
import { keepOpen, openEngine, runToEnd, scratch, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { hashOf, longProvider, lookTool, looking, turnsOf } from '../../helpers/long-run.js'
import { mortalClock, MortalProcess } from '../../helpers/mortal-process.js'

const TURNS = 44
const STEPS = [
  { text: 'look everywhere', status: 'done' },
  { text: 'find it', status: 'in_progress' },
]

/** The messages of each turn, and those of each request for a summary, by the turns in them. */
interface Sent {
  readonly turns: Map<number, string>
  readonly summaries: Map<number, string>
}

/** A model of which each answer follows from the request; it notes what it gets. */
function provider(sent: Sent, isDead: () => boolean) {
  const note = (seen: Map<number, string>, { messages }: ModelRequest): void => {
    if (isDead()) return
    const turn = turnsOf(messages)
    const text = JSON.stringify(messages)
    assert.equal(seen.get(turn) ?? text, text, `turn ${turn + 1} gets the same messages`)
    seen.set(turn, text)
  }
  return longProvider(
    (request): Said => {
      note(sent.turns, request)
      const turn = turnsOf(request.messages)
      if (turn === 3) return { calls: [{ tool: 'update_plan', args: { steps: STEPS } }] }
      if (turn === 7 && request.run.iteration === 1) return { text: 'is it?' }
      return turn < TURNS ? looking(turn + 1, 800, 1_200) : { text: 'done' }
    },
    (request): Said => {
      note(sent.summaries, request)
      // The second one fails.
      return sent.summaries.size === 2 ? {} : { text: `summary ${hashOf(request.messages)}` }
    },
  )
}

async function run(t: TestContext, disk: MemoryStore, sent: Sent, dieAt: number, cwd: string) {
  let runId = ''
  for (let lives = 0; ; lives++) {
    const mortal = MortalProcess.ofAppends(t, disk, lives === 0 ? dieAt : 0, dieAt % 2 === 0)
    const engine = await RunEngine.open({
      store: mortal.store,
      roots: [cwd],
      sealedChecks: 'off',
      checkpoints: 'off',
      providers: [provider(sent, () => mortal.isDead), repairModel()],
      defaultModel: 'test:m',
      tools: [lookTool],
      clock: mortalClock(mortal.died),
      random: () => 0,
      maxTurnsPerIteration: 100,
    })
    if (runId === '') {
      const request = { goal: 'shell: false', max_iterations: 2, metadata: {} }
      runId = (await engine.create(request)).details.run_id
    }
    const end = (async () => {
      for await (const _ of await engine.subscribe(runId));
      return true
    })()
    if (await Promise.race([end, mortal.died.then(() => false)])) {
      await engine.close()
      return await disk.read(runId, 0, 100_000)
    }
  }
}

const isCompaction = ({ kind }: RunRecord): boolean => kind === 'conversation_compacted'

test('whenever a process dies, the next one sends the same messages', async (t) => {
  const cwd = scratch(t)
  const whole: Sent = { turns: new Map(), summaries: new Map() }
  const appends: (readonly RunRecord[])[] = []
  const first = new MemoryStore()
  await first.open()
  const append = first.append.bind(first)
  first.append = async (runId, records) => {
    appends.push(records)
    await append(runId, records)
  }
  const records = await run(t, first, whole, 0, cwd)
  assert.ok(records.filter(isCompaction).length >= 2)
  assertInvariants(records)
  // Around each compaction: the turn before, the records themselves, and the turn behind.
  const numbers = new Set<number>()
  appends.forEach((group, i) => {
    if (group.some(isCompaction)) for (let at = i - 2; at <= i + 3; at++) numbers.add(at)
  })
  for (const dieAt of numbers) {
    const sent: Sent = { turns: new Map(), summaries: new Map() }
    const disk = new MemoryStore()
    await disk.open()
    const log = await run(t, disk, sent, dieAt, cwd)
    assertInvariants(log)
    assert.deepEqual(sent, whole, `died at append ${dieAt}`)
    assert.ok(log.some(({ kind }) => kind === 'run_recovered'))
  }
})

test('the log says what each turn was sent', async (t) => {
  const disk = new MemoryStore()
  await disk.open()
  const sent: Sent = { turns: new Map(), summaries: new Map() }
  const records = await run(t, disk, sent, 0, scratch(t))
  const room = 12_000 * 0.8 - promptTokens(await firstPrompt(t))
  let turns = 0
  for (const [index, { kind }] of records.entries()) {
    if (kind !== 'model_turn') continue
    // Folded anew each time, as by a process that has sent nothing yet.
    const state = records.slice(0, index).reduce<RunState | null>(foldState, null)!
    const next = dueMessages(state.messages, false).map(({ message }) => message)
    const fitted = state.conversation.fit(Math.floor(room), next, { keptTurns: true })
    assert.ok(fitted.fits)
    assert.equal(JSON.stringify(fitted.messages), sent.turns.get(turns), `turn ${turns + 1}`)
    turns += 1
  }
  assert.equal(turns, sent.turns.size)
})

/** The system prompt and the tools that every call of these runs begins with. */
async function firstPrompt(t: TestContext): Promise<string> {
  let prompt = ''
  const { engine } = await openEngine(t, {
    tools: [lookTool],
    cwd: scratch(t),
    providers: [longProvider(({ system, tools }) => {
      prompt = system + JSON.stringify(tools)
      return {}
    }, () => ({}))],
  })
  await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  return prompt
}

const promptTokens = (prompt: string): number => Math.ceil(prompt.length / 3) + 8

test('a fork takes the summary and the plan over, and a replay gives the same answers', async (t) => {
  const store = keepOpen(new MemoryStore())
  const sent: Sent = { turns: new Map(), summaries: new Map() }
  const requests: ModelRequest[] = []
  const inner = provider(sent, () => true)
  const model = inner.create('m')
  const complete = (request: ModelRequest) => {
    requests.push(request)
    return model.complete(request)
  }
  const { engine } = await openEngine(t, {
    store,
    tools: [lookTool],
    maxTurnsPerIteration: 100,
    providers: [{ ...inner, create: () => ({ ...model, complete }) }],
  })
  const { details, events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
  assert.deepEqual(details.plan, STEPS)
  const turnsIn = (list: readonly AgentEvent[]) =>
    list.flatMap((event) => (event.kind === 'model_turn' ? [event.payload.text] : []))

  const before = requests.at(-1)!.messages
  const request = { workspace: 'in_place', max_iterations: 1 } as const
  const { details: fork } = await engine.fork(details.run_id, request)
  for await (const _ of await engine.subscribe(fork.run_id));
  const after = await engine.get(fork.run_id)
  assert.deepEqual(after.plan, STEPS)
  assert.equal(after.compaction, 'summary')
  const begun = requests.find(({ run }) => run.run_id === fork.run_id)!.messages
  assert.deepEqual(summaryIn(begun), summaryIn(before))
  assert.deepEqual(begun.slice(0, 3), before.slice(0, 3))

  const { details: again, events: replayed } = await runToEnd(engine, {
    goal: 'shell: false',
    max_iterations: 2,
    model_name: `replay:${details.run_id}`,
  })
  assert.deepEqual(turnsIn(replayed), turnsIn(events))
  assert.deepEqual(again.plan, details.plan)
  assert.equal(again.end_reason, details.end_reason)
})

function summaryIn(messages: readonly Message[]): readonly Message[] {
  return messages.filter((message) => message.role === 'user' && message.stands_for !== undefined)
}
