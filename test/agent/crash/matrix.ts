/** A run whose process dies at an append of its log. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  FileStore, RunEngine, type AgentEvent, type JsonObject, type RunStore,
} from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'
import { pointsOf } from '../../helpers/kill.js'
import { assertEffects, GOAL, scenario, type DrivePlan } from './scenario.js'
import type { Place, Storage } from './storage.js'

/** Processes at the same time. */
const SIDE_BY_SIDE = 3

export const REQUESTS: readonly (readonly [name: string, request: JsonObject])[] = [
  ['without gates', { goal: GOAL }],
  ['with gates', { goal: GOAL, hitl_enabled: true, approval: 'writes' }],
]

/** Registers the crash matrix of a run for a kind of store. */
export function testMatrix(storage: Storage): void {
  for (const [name, request] of REQUESTS)
    test(`a run ${name} survives the death of its process at any append in ${storage.name}`,
      async (t) => await assertSurvival(t, storage, request))
}

async function assertSurvival(
  t: TestContext,
  storage: Storage,
  request: JsonObject,
): Promise<void> {
  const base = { generation: 0, runs: 1, request, endless: false }
  const place = await storage.place(t)
  const { steps, lines } = await place.drive({ ...base, root: place.root }, 0)
  // Before and after each append.
  assert.ok(steps > 30, `${steps} steps`)
  // Those after the effect of a call and before its result, and others.
  const results = lines.flatMap((line) => {
    const [word, number, kinds = ''] = line.split(' ')
    return word === 'append' && kinds.includes('tool_result') ? [2 * Number(number) - 1] : []
  })
  const others = pointsOf(steps, Math.max(1, storage.deaths - results.length))
  const points = [...new Set([...results, ...others])]
  t.diagnostic(`${points.length} kills at ${steps} steps`)
  const wanted = points.length
  const crashed: number[] = []
  const worker = async (): Promise<void> => {
    for (let at = points.shift(); at !== undefined; at = points.shift()) {
      crashed.push((await survives(t, await storage.place(t), base, at)) ? 1 : 0)
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker))
  // Whether noted records join the next append depends on timing: a run may need fewer appends.
  const count = crashed.reduce((sum, one) => sum + one, 0)
  assert.ok(count >= wanted - wanted / 5, `${count} of ${wanted} processes died`)
}

/** Lets a process die as planned and continues its run here; false if it did not die. */
async function survives(
  t: TestContext,
  place: Place,
  base: Omit<DrivePlan, 'root'>,
  dieAt: number,
): Promise<boolean> {
  const plan = { ...base, root: place.root }
  const { signal, lines } = await place.drive(plan, dieAt)
  if (signal === null) return false
  const seen = lines.flatMap((line) => {
    const [word, , ...event] = line.split(' ')
    return word === '=' ? [event.join(' ')] : []
  })
  const context = `died ${dieAt % 2 === 1 ? 'before' : 'after'} append ${Math.ceil(dieAt / 2)}`
  const store = await place.next()
  const engine = await RunEngine.open({
    store,
    roots: [plan.root],
    sealedChecks: 'off',
    providers: [scenario(plan.endless)],
    defaultModel: 'crash:m',
  })
  t.after(() => engine.close())
  assertSound(store, context)
  const { runs } = await engine.list()
  // A run that was killed before its first record was durable does not exist.
  if (runs.length === 0) {
    assert.deepEqual([dieAt, seen], [1, []])
    await engine.close()
    return true
  }
  const runId = runs[0]?.run_id as string
  const open = (await engine.get(runId)).gate
  const events = await approveAll(engine, runId)
  const records = await store.read(runId, 0, 100_000)
  assertInvariants(events)
  const seqs = seen.map((line) => Number(line.split(' ')[0]))
  assert.deepEqual(seqs, seqs.map((_, i) => i + 1), `${context}: events arrived in order`)
  assert.deepEqual(
    events.slice(0, seen.length).map(({ seq, kind }) => `${seq} ${kind}`),
    seen.map((line) => line.split(' ').slice(0, 2).join(' ')),
    `${context}: every published event is in the log`,
  )
  if (open !== null) {
    const answers = events.filter(
      (event) => event.kind === 'human_check_response' && event.payload.gate_id === open.gate_id,
    )
    assert.equal(answers.length, 1, `${context}: the gate survived and was answered once`)
  }
  assertEffects(join(plan.root, '0-0'), records, context)
  assert.equal((await engine.get(runId)).status, 'achieved', context)
  await engine.close()
  return true
}

/** Asserts that a file store has found no damage. */
export function assertSound(store: RunStore, context = ''): void {
  if (store instanceof FileStore) assert.deepEqual(store.quarantined, [], context)
}

/** Follows a run to its end and approves every gate on the way. */
export async function approveAll(engine: RunEngine, runId: string): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(runId)) {
    for (const { seq, json } of batch) {
      if (seq === null) continue
      const event = JSON.parse(json) as AgentEvent
      events.push(event)
      if (event.kind !== 'human_check_required') continue
      const { gate_id } = event.payload
      await engine.resume(runId, { decision: 'approve', gate_id }).catch(() => undefined)
    }
  }
  return events
}
