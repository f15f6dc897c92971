/**
 * Long runs at random, against a model of what each call of the language model must get: the goal,
 * the newest verdict, what people said, the plan, pairs of calls and results, all of it once and
 * within the window.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Message, ModelRequest, RunEngine } from 'runwright/agent'
import { estimateConversation } from '../../../lib/agent/conversation/fit.js'
import { openEngine, runToEnd, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { longProvider, lookTool, turnsOf } from '../../helpers/long-run.js'
import { Random } from '../../helpers/random.js'
import { partedCalls } from '../crash/talk.js'

const RUNS = Number(process.env['RUNWRIGHT_RANDOM_RUNS'] ?? 25)
const SENT = 'Message from the user:\n\n'

/** What a run has told its model so far. */
interface Known {
  /** Messages of people, in the order in which they were heard. */
  readonly people: string[]
  /** The steps of the newest plan, in the words of the model. */
  plan: string
  turns: number
  summary: string | null
}

test(`${RUNS} random long runs tell the model what it must know, once`, async (t) => {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const counts = { summaries: 0, failures: 0, people: 0, verdicts: 0, plans: 0 }
  for (let index = 0; index < RUNS; index++) {
    const random = new Random(seed * 1000 + index)
    for (let i = 0; i < 32; i++) random.next() // similar seeds begin with similar numbers
    await oneRun(t, random, counts).catch((cause: unknown) => {
      throw new Error(`seed ${seed}, run ${index}`, { cause })
    })
  }
  t.diagnostic(JSON.stringify(counts))
  if (RUNS < 25) return
  for (const [name, count] of Object.entries(counts)) assert.ok(count > 5, `${name}: ${count}`)
})

type Counts = {
  summaries: number
  failures: number
  people: number
  verdicts: number
  plans: number
}

async function oneRun(t: TestContext, random: Random, counts: Counts): Promise<void> {
  const window = random.integer(9_000, 24_000)
  const turns = random.integer(20, 70)
  const known: Known = { people: [], plan: '', turns: 0, summary: null }
  const wrong: unknown[] = []
  let engine: RunEngine | undefined
  let said = 0
  const looksAt = (check: () => void): void => {
    try {
      check()
    } catch (error) {
      wrong.push(error)
      throw error
    }
  }
  const provider = longProvider(
    async (request) => {
      looksAt(() => checkRequest(request, known, window, counts))
      known.turns += 1
      if (random.chance(0.1)) {
        const text = `${(said += 1)} ${'w'.repeat(random.integer(1, 1_500))}`
        await engine!.message(request.run.run_id, { text })
      }
      if (known.turns >= turns) return { text: 'done' }
      return randomTurn(random, known)
    },
    (request) => {
      looksAt(() => checkSummaryRequest(request, window))
      if (random.chance(0.3)) return {}
      known.summary = `summary-${known.turns}`
      return { text: known.summary }
    },
    window,
  )
  const made = await openEngine(t, {
    providers: [provider],
    tools: [lookTool],
    maxTurnsPerIteration: random.integer(3, 40),
    detectStuck: false,
  })
  engine = made.engine
  const goal = 'shell: echo "there are $(ls | wc -l) files"; false'
  const { events, details } = await runToEnd(engine, { goal, max_iterations: 30 })
  assert.deepEqual(wrong, [])
  assertInvariants(events)
  assert.equal(details.error, null)
  for (const event of events) {
    if (event.kind !== 'conversation_compacted') continue
    if (event.payload.summary === null) counts.failures += 1
    else counts.summaries += 1
  }
  assert.equal(details.plan === null ? '' : details.plan[0]!.text, known.plan)
  await engine.close()
}

function randomTurn(random: Random, known: Known): Said {
  const turn = known.turns
  if (random.chance(0.15)) return { text: 'what does the check say?' }
  if (random.chance(0.1)) {
    known.plan = `plan-${turn}.`
    const steps = [{ text: known.plan, status: random.pick(['pending', 'in_progress', 'done']) }]
    return { calls: [{ tool: 'update_plan', args: { steps }, call_id: `p${turn}` }] }
  }
  // Some outputs leave no room for anything else.
  const longest = random.chance(0.08) ? 60_000 : 1_200
  const calls = Array.from({ length: random.integer(1, 3) }, (_, i) => ({
    tool: 'look',
    args: { at: `place ${turn}.${i}`, length: random.integer(10, longest) },
    call_id: `c${turn}_${i}`,
  }))
  return { text: `turn ${turn} ${'.'.repeat(random.integer(0, 1_800))}`, calls }
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => (message.role === 'user' ? [message.text] : []))
}

function checkRequest(
  { messages, run, system, tools }: ModelRequest,
  known: Known,
  window: number,
  counts: Counts,
): void {
  const room = window * 0.8 - Math.ceil((system + JSON.stringify(tools)).length / 3) - 8
  assert.ok(estimateConversation(messages) <= room, 'it fits into the window')
  assert.deepEqual(partedCalls(messages), [])
  assert.match((messages[0] as { text: string }).text, /^Goal: shell: echo/)
  const texts = textsOf(messages)
  assert.equal(new Set(texts).size, texts.length, 'nothing is sent twice')
  const ids = messages.flatMap((one) => (one.role === 'tool' ? [one.call_id] : []))
  assert.equal(new Set(ids).size, ids.length, 'nothing is sent twice')
  assert.equal(turnsOf(messages), known.turns, 'each turn is there, or something stands for it')

  const people = texts.filter((text) => text.startsWith(SENT))
  for (const text of people) if (!known.people.includes(text)) known.people.push(text)
  let left = room / 8
  const short = known.people.filter(() => true).reverse().findIndex((text) => {
    left -= Math.ceil(text.length / 3) + 8
    return left < 0
  })
  const newest = short < 0 ? known.people : known.people.slice(known.people.length - short)
  assert.deepEqual(people.slice(people.length - newest.length), newest)
  if (newest.length > 0) counts.people += 1

  if (run.iteration > 1) {
    const verdict = `Goal check after iteration ${run.iteration - 1}: not achieved`
    const found = texts.filter((text) => text.startsWith(verdict))
    assert.equal(found.length, 1, 'the newest verdict')
    const isWhole = (text: string): boolean => /Output of the check:\nthere are 0 files/.test(text)
    const checks = texts.filter((text) => text.startsWith('Goal check after iteration'))
    // The first message has the output of the first check.
    assert.ok(checks.some(isWhole) || isWhole(texts[0]!), 'and its output')
    counts.verdicts += 1
  }
  if (known.plan !== '') {
    const plans = texts.filter((text) => text.startsWith('Your plan')).concat(
      messages.flatMap((one) =>
        one.role === 'assistant' && one.calls.some(({ tool }) => tool === 'update_plan')
          ? [JSON.stringify(one.calls)]
          : [],
      ),
    )
    assert.equal(plans.filter((text) => text.includes(known.plan)).length, 1, 'the plan')
    counts.plans += 1
  }
  if (known.summary !== null) {
    const stand = texts.filter((text) => text.startsWith('[Summary of'))
    assert.deepEqual(stand.map((text) => text.split('\n').at(-1)), [`| ${known.summary}`])
  }
}

function checkSummaryRequest(request: ModelRequest, window: number): void {
  const { messages, system, tools } = request
  const room = window * 0.8 - Math.ceil((system + JSON.stringify(tools)).length / 3) - 8
  assert.ok(estimateConversation(messages) <= room, 'it fits into the window')
  assert.deepEqual(partedCalls(messages), [])
  assert.match((messages[0] as { text: string }).text, /^Goal: shell: echo/)
}
