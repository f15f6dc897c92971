/** A run whose engine is closed at an event of its log, and that the next engine finishes. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  isTerminal, RunEngine, type AgentEvent, type JsonObject, type RunStatus, type RunStore,
} from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'
import { approveAll, assertSound, REQUESTS } from './matrix.js'
import { assertEffects, scenario } from './scenario.js'
import type { Place, Storage } from './storage.js'

/** With this many deaths, an engine is closed at every event. */
const EVENTS = 160
/** Longer than a run takes. */
const GRACE_MS = 600_000

/** Registers the hand-over of a run for a kind of store. */
export function testHandOver(storage: Storage): void {
  for (const [i, [name, request]] of REQUESTS.entries())
    for (const [j, [how, graceMs]] of HOW.entries())
      test(`an engine closed ${how} at an event of a run ${name} hands it over: ${storage.name}`,
        // Each of the four begins with another event.
        async (t) => await assertHandOver(t, storage, request, graceMs, 1 + 2 * i + j))
}

const HOW = [['at once', 0], ['with grace', GRACE_MS]] as const

async function assertHandOver(
  t: TestContext,
  storage: Storage,
  request: JsonObject,
  graceMs: number,
  first: number,
): Promise<void> {
  const place = await storage.place(t)
  const stride = Math.max(1, Math.round(EVENTS / storage.deaths))
  const left: Record<string, number> = {}
  for (let at = first; ; at += stride) {
    const how = await handOver(t, storage, place, request, graceMs, at)
    if (how === null) break
    left[how] = (left[how] ?? 0) + 1
  }
  t.diagnostic(JSON.stringify(left))
  // In a shared store, a run with gates ends here only if no gate follows.
  const isRare = storage.isShared && graceMs > 0
  const isEnough = graceMs === 0 ? (left['suspended'] ?? 0) > 0 : (left['ended'] ?? 0) > 0
  assert.ok(isEnough || isRare, 'the test tests less than it should')
}

/** The state in which a closed engine leaves a run. */
type Left = 'pending' | 'suspended' | 'waiting' | 'answered' | 'ended'

/** Closes an engine at an event; returns null if the run ends before. */
async function handOver(
  t: TestContext,
  { isShared }: Storage,
  place: Place,
  request: JsonObject,
  graceMs: number,
  at: number,
): Promise<Left | null> {
  const cwd = join(place.root, `${at}`)
  mkdirSync(cwd)
  const first = await open(t, await place.next(), place)
  const stored: AgentEvent[] = []
  let status: RunStatus = 'pending'
  let closing: { readonly status: RunStatus; readonly closed: Promise<void> } | undefined
  const over = new Promise<void>((resolve) => {
    first.observe(({ details, events }) => {
      stored.push(...events)
      status = details.status
      if (stored.length >= at) closing ??= { status, closed: first.close({ graceMs }) }
      if (stored.length >= at || isTerminal(status)) resolve()
    })
  })
  const { details } = await first.create({ ...request, cwd })
  const runId = details.run_id
  const reading = approveAll(first, runId).catch(() => [])
  await over
  await (closing?.closed ?? first.close())
  await reading
  const left = leftOf(status, stored)
  const store = await place.next()
  const next = await open(t, store, place)
  const events = await approveAll(next, runId)
  const context = `closed at event ${at} of ${events.map(({ kind }) => kind).join(' ')}`
  assertSound(store, context)
  assertInvariants(events)
  assert.equal((await next.get(runId)).status, 'achieved', context)
  assert.deepEqual(events.slice(0, stored.length), stored, context)
  if (closing !== undefined) {
    const hasGate = stored.slice(at - 1).some(({ kind }) => kind.startsWith('human_check_'))
    const known = possibleStates(closing.status, graceMs, isShared, hasGate)
    assert.ok(known.includes(left), `${left}: ${context}`)
  }
  const suspensions = events.flatMap(({ kind }, i) => (kind === 'run_suspended' ? [i + 1] : []))
  assert.deepEqual(suspensions, left === 'suspended' ? [stored.length] : [], context)
  // An own store does not know that the engine had left a run at a gate before it was answered, so
  // that run looks as if its process had died. A shared store knows that no process holds it.
  const isRecovered = left === 'answered' && !isShared
  const recoveries = events.flatMap(({ kind }, i) => (kind === 'run_recovered' ? [i] : []))
  assert.deepEqual(recoveries, isRecovered ? [stored.length] : [], context)
  assertEffects(cwd, await store.read(runId, 0, 10_000), context)
  await next.close()
  return closing === undefined ? null : left
}

/** What a closed engine has left, by the status and the log of the run. */
function leftOf(status: RunStatus, stored: readonly AgentEvent[]): Left {
  if (isTerminal(status)) return 'ended'
  if (status === 'awaiting_human') return 'waiting'
  if (status === 'pending') return 'pending'
  const last = stored.at(-1)?.kind
  if (last === 'human_check_response') return 'answered'
  assert.equal(last, 'run_suspended', 'a closed engine leaves no run at work')
  return 'suspended'
}

/**
 * What can be left of a run that had this status when its engine began to close. `hasGate`: from
 * then on, it comes to a gate or is answered.
 */
function possibleStates(
  status: RunStatus,
  graceMs: number,
  isShared: boolean,
  hasGate: boolean,
): readonly Left[] {
  // It begins with the next engine.
  if (status === 'pending') return ['pending']
  if (isTerminal(status)) return ['ended']
  const isAtGate = status === 'awaiting_human' || hasGate
  // No process holds such a run of a shared store, and one that closes claims none.
  if (isShared && isAtGate) return ['waiting', 'answered']
  if (status === 'running' && graceMs > 0) return ['ended']
  // An own engine suspends a run whose answer comes before it has left it.
  return isAtGate ? ['waiting', 'answered', 'suspended'] : ['suspended']
}

async function open(t: TestContext, store: RunStore, { root, copies }: Place): Promise<RunEngine> {
  const engine = await RunEngine.open({
    store,
    roots: [root],
    workspaceFolder: copies,
    sealedChecks: 'off',
    providers: [scenario(false)],
    defaultModel: 'crash:m',
  })
  t.after(() => engine.close())
  return engine
}
