/** Messages that come at every point of a run at which something is stored, or the model works. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, type AgentEvent, type JsonObject, type RunEngine } from 'runwright/agent'
import { follow, openEngine, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { partedCalls } from '../crash/talk.js'

const DELIVERIES = ['next_turn', 'next_iteration'] as const

/** A store that calls a function before and after each append. */
class PointStore extends MemoryStore {
  onPoint: () => void = () => undefined

  override async append(...given: Parameters<MemoryStore['append']>): Promise<void> {
    this.onPoint()
    await super.append(...given)
    this.onPoint()
  }
}

/** Sends a message at a point of a run; returns the number of points that the run has. */
async function sendAt(
  t: TestContext,
  wanted: number,
  deliver: (typeof DELIVERIES)[number],
  request: JsonObject,
  counts: Record<string, number>,
): Promise<number> {
  const store = new PointStore()
  let points = 0
  let sent: Promise<string | null> | undefined
  let engine: RunEngine | undefined
  let runId = ''
  const point = (): void => {
    if (runId === '' || (points += 1) !== wanted) return
    sent = engine!.message(runId, { text: 'hello', deliver }).then(
      ({ message_id }) => message_id,
      (error: { readonly problem?: string }) => {
        assert.equal(error.problem, 'ended')
        return null
      },
    )
  }
  store.onPoint = point
  const heardBy: boolean[] = []
  const provider = testProvider(({ messages, run }) => {
    point()
    assert.deepEqual(partedCalls(messages), [])
    heardBy.push(messages.some((one) => one.role === 'user' && one.text.endsWith('hello')))
    const args = { path: 'a', content: `${run.iteration}` }
    return run.turn === 0 ? { calls: [{ tool: 'write_file', args }] } : {}
  })
  ;({ engine } = await openEngine(t, { store, providers: [provider] }))
  const { details } = await engine.create({ goal: 'shell: grep -q 2 a', ...request })
  runId = details.run_id
  const events = await follow(engine, runId)
  const id = await sent
  assertInvariants(events)
  const ids = events.flatMap((one) => (one.kind === 'user_message' ? [one.payload.message_id] : []))
  assert.deepEqual(ids, id == null ? [] : [id], 'what was answered is stored, and nothing else')
  const what = id === undefined ? 'none' : id === null ? 'refused' : fate(events, id)
  counts[what] = (counts[what] ?? 0) + 1
  // Heard by the first call that the rule allows, and by all after it.
  if (what === 'heard') assert.equal(heardBy.at(-1), true)
  else assert.ok(!heardBy.includes(true), what)
  await engine.close()
  return points
}

function fate(events: readonly AgentEvent[], id: string): 'heard' | 'named' {
  const isHeard = (one: AgentEvent): boolean =>
    one.kind === 'model_turn' && one.payload.heard?.includes(id) === true
  if (events.some(isHeard)) return 'heard'
  const end = events.at(-1)
  assert.deepEqual(end?.kind === 'run_end' && end.payload.unheard, [id])
  return 'named'
}

for (const [name, request] of [
  ['meets its goal', {}],
  ['reaches its bound', { max_iterations: 1 }],
] as const) {
  test(`a message at any point of a run that ${name} is heard, named, or refused`, async (t) => {
    const counts: Record<string, number> = {}
    for (const deliver of DELIVERIES) {
      for (let wanted = 1; ; wanted++) {
        if ((await sendAt(t, wanted, deliver, request, counts)) < wanted) break
      }
    }
    t.diagnostic(JSON.stringify(counts))
    assert.ok(counts['heard']! > 5 && counts['refused']! >= 2, JSON.stringify(counts))
  })
}

test('of messages that come at once, exactly 100 are accepted', async (t) => {
  const store = new MemoryStore()
  let first: () => void = () => undefined
  const open = new Promise<void>((resolve) => (first = resolve))
  let called: () => void = () => undefined
  const calling = new Promise<void>((resolve) => (called = resolve))
  const provider = testProvider(async () => {
    called()
    await open
    return {}
  })
  const { engine } = await openEngine(t, { store, providers: [provider] })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  await calling
  const answers = await Promise.allSettled(
    Array.from({ length: 150 }, (_, i) => engine.message(details.run_id, { text: `${i}` })),
  )
  const accepted = answers.flatMap((one) =>
    one.status === 'fulfilled' ? [one.value.message_id] : [],
  )
  const refused = answers.flatMap((one) =>
    one.status === 'rejected' ? [(one.reason as { problem: string }).problem] : [],
  )
  assert.deepEqual([accepted.length, new Set(refused)], [100, new Set(['too_many_messages'])])
  first()
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  const heard = events.flatMap((event) =>
    event.kind === 'model_turn' ? (event.payload.heard ?? []) : [],
  )
  assert.deepEqual(heard, accepted)
})
