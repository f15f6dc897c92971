/** Runs whose processes are killed from outside, many times. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { processExecutor, type RunDetails } from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'
import type { Mortal } from '../../helpers/kill.js'
import { Random } from '../../helpers/random.js'
import { assertSound } from './matrix.js'
import { assertEffects, GOAL } from './scenario.js'
import type { KillableStorage } from './storage.js'

/** Runs that are live at the same time. */
const RUNS = 2
/** The lines that all children printed about each run: `seq kind hash`, from seq 1. */
type Seen = Map<string, string[]>

/** Registers the test of killed children for a kind of store. */
export function testKills(storage: KillableStorage): void {
  test(`runs that are killed many times lose and repeat nothing in ${storage.name}`, async (t) =>
    await assertKills(t, storage))
}

async function assertKills(t: TestContext, storage: KillableStorage): Promise<void> {
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  // More than elsewhere, since the next child starts while one works.
  const count = 2 * storage.deaths
  const random = new Random(seed)
  const place = await storage.place(t)
  const seen: Seen = new Map()
  t.after(async () => {
    const executor = processExecutor()
    for (const runId of seen.keys()) await executor.killMarked(runId)
  })
  const start = (generation: number): Mortal => {
    const gates = {
      hitl_enabled: random.chance(0.5),
      approval: random.pick(['never', 'writes'] as const),
    }
    return place.start({
      root: place.root,
      generation,
      runs: RUNS,
      request: { goal: GOAL, ...gates },
      endless: true,
    })
  }
  let orphans = 0
  let next = start(0)
  for (let kill = 0; kill < count; kill++) {
    // The next child starts while this one works: starting takes the most time.
    const child = next
    next = start(kill + 1)
    orphans += await runAndKill(child, random.integer(1, 60), seen)
    await place.bury()
  }
  next.kill()
  await next.ended

  const store = await place.next()
  await store.open()
  assertSound(store)
  const { heads } = await store.list({ limit: 100_000 })
  const found = new Map(heads.map(({ details }) => [details.run_id, details]))
  const ends: Record<string, number> = {}
  for (const [runId, events] of seen) {
    const details = found.get(runId)
    assert.ok(details !== undefined, `${runId} was published and is lost`)
    const records = await store.read(runId, 0, 100_000)
    assert.ok(records.length >= events.length, `${runId} has lost acknowledged events`)
    assertInvariants(records, details.ended_at !== null)
    assertEffects(details.cwd, records, `run ${runId}`)
    assertEnd(details, records.filter(({ kind }) => kind === 'run_recovered').length)
    const end = details.end_reason ?? 'lives'
    ends[end] = (ends[end] ?? 0) + 1
  }
  await store.close()
  t.diagnostic(JSON.stringify({ kills: count, ...ends, orphans }))
  assert.ok(
    (ends['goal_achieved'] ?? 0) > 0,
    'no run was achieved: the test tests less than it should',
  )
  assert.ok(orphans > 0, 'no command was left running: the test tests less than it should')
}

/** A run is achieved however often its process died, unless it reached the limit of recoveries. */
function assertEnd(details: RunDetails, recoveries: number): void {
  const { run_id, status, end_reason } = details
  if (details.ended_at === null) return
  if (end_reason === 'recovery_failed')
    assert.ok(recoveries >= 3, `${run_id} was given up after ${recoveries} recoveries`)
  else assert.deepEqual([status, end_reason], ['achieved', 'goal_achieved'], run_id)
}

/**
 * Kills a child after a number of new events, or when all of its runs hang, and compares what it
 * said with what earlier children said. Returns the number of commands that an earlier child
 * left running, all of which must be gone by now.
 */
async function runAndKill(child: Mortal, events: number, seen: Seen): Promise<number> {
  const positions = new Map<string, number>()
  const hanging = new Set<string>()
  let received = 0
  let orphans = 0
  child.send('go')
  for await (const line of child.lines()) {
    const [word, runId = '', seq, kind, hash] = line.split(' ')
    if (word === 'new') positions.set(runId, 0)
    if (word === '=') {
      const known = seen.get(runId) ?? []
      seen.set(runId, known)
      const position = (positions.get(runId) ?? 0) + 1
      positions.set(runId, position)
      const event = `${seq} ${kind} ${hash}`
      assert.equal(Number(seq), position, `run ${runId}: events arrive in order, each once`)
      if (position > known.length) {
        known.push(event)
        received += 1
      } else assert.equal(event, known[position - 1], `run ${runId}: published events never change`)
      if (kind === 'run_end') positions.delete(runId)
    }
    if (word === 'left') {
      const pid = Number(seq)
      orphans += 1
      assert.ok(!carriesMark(pid, runId), `process ${pid} of run ${runId} outlived its service`)
    }
    if (word === 'hangs') hanging.add(runId)
    if (word === '=' && kind === 'tool_result') hanging.delete(runId)
    const stuck = positions.size > 0 && [...positions.keys()].every((id) => hanging.has(id))
    if (received >= events || stuck) child.kill()
  }
  assert.equal((await child.ended).signal, 'SIGKILL')
  return orphans
}

/** True if the process exists and belongs to the run. A zombie has no environment. */
function carriesMark(pid: number, runId: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`RUNWRIGHT_RUN=${runId}`)
  } catch {
    return false
  }
}
