import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, RunEngine, type AgentEvent } from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'
import { assertEffects, CrashWorld, endOf, linesOf } from './crash-world.js'
import { GOAL, scenario, type ChildPlan } from './scenario.js'

/** Children at the same time. */
const SIDE_BY_SIDE = 3
/** Both sides of every append, which takes twice the time; else alternating sides. */
const BOTH_SIDES = Number(process.env['RUNWRIGHT_KILLS'] ?? 0) >= 500
const SIDES = ['before', 'after'] as const

for (const [name, request] of [
  ['without gates', { goal: GOAL }],
  ['with gates', { goal: GOAL, hitl_enabled: true, approval: 'writes' }],
] as const) {
  test(`a process that drives a run ${name} can be killed at any append of its log`, async (t) => {
    const world = new CrashWorld(t)
    const base = { generation: 0, runs: 1, request, endless: false }
    const whole = world.start({ ...base, ...world.place('whole'), killAt: 0, side: 'before' })
    let appends = 0
    for await (const [word, count] of linesOf(whole)) if (word === 'done') appends = Number(count)
    assert.equal(await endOf(whole), null)
    assert.ok(appends > 15, `${appends} appends`)
    const plans = Array.from({ length: appends }, (_, i) =>
      (BOTH_SIDES ? SIDES : [SIDES[i % 2] as 'before']).map(
        (side): ChildPlan => ({ ...base, ...world.place(`${i + 1}-${side}`), killAt: i + 1, side }),
      ),
    ).flat()
    const wanted = plans.length
    const crashed: number[] = []
    const worker = async (): Promise<void> => {
      for (let plan = plans.shift(); plan !== undefined; plan = plans.shift()) {
        crashed.push((await survives(t, world, plan)) ? 1 : 0)
      }
    }
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker))
    // Whether noted records join the next append depends on timing: a run may need fewer appends.
    const count = crashed.reduce((sum, one) => sum + one, 0)
    assert.ok(count >= wanted - wanted / 5, `${count} of ${wanted} children crashed`)
  })
}

/** Lets a child crash as planned and continues its run here; false if it did not crash. */
async function survives(t: TestContext, world: CrashWorld, plan: ChildPlan): Promise<boolean> {
  const child = world.start(plan)
  const seen: string[] = []
  for await (const [word = '', , ...event] of linesOf(child))
    if (word === '=') seen.push(event.join(' '))
  if ((await endOf(child)) === null) return false
  const context = `killed ${plan.side} append ${plan.killAt}`
  const store = new FileStore({ directory: plan.directory })
  const engine = await RunEngine.open({
    store,
    roots: [plan.root],
    sealedChecks: 'off',
    providers: [scenario(plan.endless)],
    defaultModel: 'crash:m',
  })
  t.after(() => engine.close())
  assert.deepEqual(store.quarantined, [], context)
  const { runs } = await engine.list()
  // A run that was killed before its first record was durable does not exist.
  if (runs.length === 0) {
    assert.deepEqual([plan.killAt, plan.side, seen], [1, 'before', []])
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

/** Follows a run to its end and approves every gate on the way. */
async function approveAll(engine: RunEngine, runId: string): Promise<AgentEvent[]> {
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
