/** Runs whose first check is kept by hash. */
import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  FileStore,
  MemoryStore,
  type AgentEvent,
  type Executor,
  type RunRecord,
  type TestOutcome,
} from 'runwright/agent'
import { redactedDraft } from '../../../lib/agent/log/redacted-draft.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { areHashed } from '../../../lib/agent/test-outcomes.js'
import { untilAborted } from '../../helpers/abort.js'
import { follow, openEngine, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

const COUNT = 20_500
const GOAL = { goal: 'shell: node --test', max_iterations: 2 }
/** The model changes something, so that the goal is checked again. */
const writes: Said = { calls: [{ tool: 'write_file', args: { path: 'a.js', content: '' } }] }

/** An executor that reports a suite by itself, as the reporter for node:test would. */
class Suite implements Executor {
  readonly name = 'suite'
  /** The outcome of each test; null for a test that is not there. */
  outcomeOf: (i: number) => TestOutcome | null = (i) => (i === 3 ? 'fail' : 'pass')
  /** A title in place of the first test's. */
  title: string | null = null

  run: Executor['run'] = (_command, { writable }) => {
    const folder = writable?.[0] ?? ''
    const names = readdirSync(folder).map((name) => /^reporter-(\w+)\.mjs$/.exec(name)?.[1])
    const nonce = names.find((name) => name !== undefined)
    const lines: string[] = []
    const add = (...line: unknown[]): unknown => lines.push(`${JSON.stringify([nonce, ...line])}\n`)
    for (let i = 0; i < COUNT; i++) {
      const outcome = this.outcomeOf(i)
      const title = (i === 0 ? this.title : null) ?? `number ${i}`
      if (outcome !== null) add('test', [`test/${i % 7}.js`, title], outcome)
    }
    add('end')
    writeFileSync(join(folder, 'report-1-1.jsonl'), lines.join(''))
    const exitCode = lines.some((line) => line.endsWith('"fail"]\n')) ? 1 : 0
    const result = { output: '', truncated: false, timedOut: false, durationMs: 1 }
    return Promise.resolve({ exitCode, ...result })
  }

  killMarked: Executor['killMarked'] = () => Promise.resolve(0)
}

const reasons = (events: readonly AgentEvent[]): readonly string[] =>
  events.flatMap((event) => (event.kind === 'goal_check' ? [event.payload.reason] : []))

function checksOf(records: readonly RunRecord[]): readonly (RunRecord & { kind: 'goal_check' })[] {
  return records.flatMap((record) => (record.kind === 'goal_check' ? [record] : []))
}

test('a big suite is achieved when all its tests are there and pass', async (t) => {
  const suite = new Suite()
  const store = new MemoryStore()
  const provider = testProvider((_, call) => {
    suite.outcomeOf = () => 'pass'
    return call % 2 === 0 ? writes : {}
  })
  const { engine } = await openEngine(t, { store, executor: suite, providers: [provider] })
  const { details } = await engine.create(GOAL)
  const events = await follow(engine, details.run_id, ({ kind }) => kind === 'run_end')
  assert.deepEqual(reasons(events), [
    `1 of ${COUNT} tests fail`,
    `all ${COUNT} tests pass`,
  ])
  assert.equal((await engine.get(details.run_id)).status, 'achieved')
  const records = await store.read(details.run_id, 0, 1_000)
  assertInvariants(events)
  const checks = checksOf(records)
  assert.deepEqual(checks.map(({ v }) => v), [3, 1])
  assert.ok(areHashed(checks[0]?.private?.tests))
  assert.equal(checks[1]?.private?.tests, null, 'only the first is compared with')
  assert.ok(JSON.stringify(checks).length < COUNT * 12 + 2_000)
})

async function suspended(t: TestContext, suite: Suite): Promise<[FileStore, string, string]> {
  const directory = scratch(t)
  let arrived = (): void => undefined
  const waits = new Promise<void>((resolve) => (arrived = resolve))
  const provider = testProvider(({ signal }) => {
    arrived()
    return untilAborted(signal)
  })
  const store = new FileStore({ directory })
  const { engine, cwd } = await openEngine(t, { store, executor: suite, providers: [provider] })
  const { details } = await engine.create(GOAL)
  await waits
  await engine.close()
  return [new FileStore({ directory }), cwd, details.run_id]
}

for (const [what, outcomeOf, said] of [
  ['all tests', () => 'pass', `all ${COUNT} tests pass`],
  [
    'two tests less',
    (i) => (i === 8 || i === 9 ? null : 'pass'),
    'tests changed: 2 tests of the first check are missing, one of them in "test/1.js"',
  ],
  [
    'a test skipped',
    (i) => (i === 8 ? 'skip' : 'pass'),
    'tests changed: "test/1.js > number 8" is skipped',
  ],
] as readonly (readonly [string, Suite['outcomeOf'], string])[]) {
  test(`a process that goes on compares with the first check: ${what}`, async (t) => {
    const suite = new Suite()
    const [store, cwd, runId] = await suspended(t, suite)
    suite.outcomeOf = outcomeOf
    const provider = testProvider((_, call) => (call % 2 === 0 ? writes : {}))
    const { engine } = await openEngine(t, { store, cwd, executor: suite, providers: [provider] })
    const last = (await follow(engine, runId)).at(-1)
    assert.equal(last?.kind, 'run_end')
    const events = (await store.read(runId, 0, 1_000)) as readonly AgentEvent[]
    assert.equal(reasons(events)[1], said)
    assert.equal(last.payload.achieved, what === 'all tests')
  })
}

for (const at of ['start', 'end'] as const) {
  test(`a fork of the ${at} is compared with the first check of its source`, async (t) => {
    const suite = new Suite()
    const store = new MemoryStore()
    const provider = testProvider(() => ({}))
    const options = { checkpoints: 'auto', executor: suite, providers: [provider] } as const
    const { engine } = await openEngine(t, { ...options, store })
    const { details } = await engine.create(GOAL)
    await follow(engine, details.run_id)
    suite.outcomeOf = (i) => (i === 3 ? null : 'pass')
    const request = { at, workspace: 'in_place', max_iterations: 1 }
    const { details: fork } = await engine.fork(details.run_id, request)
    const events = await follow(engine, fork.run_id)
    const missing = 'tests changed: 1 test of the first check is missing in "test/3.js"'
    assert.equal(reasons(events)[0], missing)
    const records = await store.read(fork.run_id, 0, 1_000)
    assert.equal(records[0]?.v, 3)
    assert.deepEqual(checksOf(records).map(({ v }) => v), checksOf(records).map(() => 1))
    suite.outcomeOf = () => 'pass'
    const again = await engine.fork(details.run_id, request)
    await follow(engine, again.details.run_id)
    assert.equal((await engine.get(again.details.run_id)).status, 'achieved')
  })
}

test('a report that is too large ends the run before any work, and says what to do', async (t) => {
  const suite = new Suite()
  suite.title = 'x'.repeat(65_536)
  const provider = testProvider(() => assert.fail('no model is called'))
  const { engine } = await openEngine(t, { executor: suite, providers: [provider] })
  const { details } = await engine.create(GOAL)
  const events = await follow(engine, details.run_id)
  const { status, end_reason, error } = await engine.get(details.run_id)
  assert.deepEqual([status, end_reason, error?.code], [
    'failed', 'goal_check_error', 'ERR_AGENT_GOAL_CHECK',
  ])
  assert.match(error?.message ?? '', /report .* too large.* a million tests.* run a part/)
  assert.deepEqual(reasons(events), [])
})

test('a report that becomes too large later is a check that fails', async (t) => {
  const suite = new Suite()
  const provider = testProvider((_, call) => {
    suite.title = 'x'.repeat(65_536)
    return call % 2 === 0 ? writes : {}
  })
  const { engine } = await openEngine(t, { executor: suite, providers: [provider] })
  const { details } = await engine.create({ ...GOAL, max_iterations: 1 })
  const events = await follow(engine, details.run_id)
  assert.equal(reasons(events)[1], 'the report of the test runner is too large to be read')
  assert.equal((await engine.get(details.run_id)).end_reason, 'max_iterations')
})

test('hashes are stored as they are, and names beside them without secrets', () => {
  const secret = 'correct-horse-battery'
  const key = 'QUJDREVGR0hJ' // the hash of a test happens to be a secret as well
  const hashed = {
    files: [[`${secret}.js`, 2, 0, 0]] as const, pass: key, fail: '', skip: '', broken: {},
  }
  const payload = {
    achieved: false, reason: `${secret} fails`, verified_by: 'command', cached: false,
    counts: null, duration_ms: 1,
  } as const
  const draft = redactedDraft(
    { kind: 'goal_check', iteration: 0, payload, private: { output: secret, tests: { hashed } } },
    new Redactor([secret, key]),
  )
  const kept = draft.private?.tests
  assert.ok(areHashed(kept))
  assert.equal(kept.hashed.pass, key)
  assert.equal(JSON.stringify(draft).includes(secret), false)
})
