/** Texts that PostgreSQL cannot take apart, and rows that cannot be read. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import {
  PostgresStore, RunEngine, type Admission, type EngineOptions, type RunRecord,
} from 'runwright/agent'
import type { RecordDraft } from '../../../lib/agent/events.js'
import { versionOf } from '../../../lib/agent/log/changes/index.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { assertStorable, BAD, BAD_RUNS, badWriters } from '../../helpers/bad-writers.js'
import { atGate, follow, runToEnd, scratch, testProvider } from '../../helpers/engine.js'
import { openService } from '../../server/open-service.js'
import { noPostgres, openDatabase } from './postgres.js'
import { openStore, until } from './stores.js'

type RunCreated = Admission['created']

const { newSchema, pool } = await openDatabase()

describe('texts in PostgresStore', { skip: noPostgres }, () => {
  test('tables of version 11 get their columns, whatever texts their rows have', async (t) => {
    const dump = new URL('../../fixtures/versions/postgres-11.sql', import.meta.url)
    await pool.query(readFileSync(dump, 'utf8'))
    const store = await openStore(t, { pool, schema: 'old', listen: false, leaseMs: 600_000 })
    assert.deepEqual(await columns('old'), {
      'at-gate': [true, false],
      changing: [null, true],
      ended: [null, false],
      isolated: [false, false],
      occupied: [null, false],
      queued: [true, false],
      'with-folder': [null, false],
      'without-folder': [false, false],
    })
    const claims = await store.shared.claim(9)
    const claimed = claims.map(({ runId }) => runId).sort()
    const live = ['at-gate', 'isolated', 'queued', 'with-folder', 'without-folder']
    assert.deepEqual(claimed, [...live, 'changing', 'occupied'].sort())
    for (const runId of claimed) await store.shared.release(runId)
    // What is in the middle of a change stays in it.
    const { rows } = await pool.query('SELECT run_id FROM old.runs WHERE operates')
    assert.deepEqual(rows, [{ run_id: 'changing' }])
    const { heads } = await store.list({ limit: 99 })
    assert.equal(heads.length, 8)
    assert.deepEqual(heads.filter(({ problem }) => problem !== undefined), [])
    assert.equal((await store.list({ endReason: ['goal_achieved'], limit: 9 })).heads.length, 3)
    assert.deepEqual(store.damage(), { runs: [], files: [] })
  })

  test('processes of version 11 go on beside newer ones', async (t) => {
    const schema = newSchema()
    const store = await openStore(t, { pool, schema, listen: false, leaseMs: 600_000 })
    // The statements of that version name no new column.
    const [created] = sampleRun('template', { status: 'pending' })
    await admit(store, created as RunCreated)
    const insert = async (
      runId: string, folder: string | null, workspace: string,
    ): Promise<void> => {
      const text = `INSERT INTO ${schema}.runs (run_id, created_ms, status, goal_hash, model_name,
          fixed, head, last_seq, folder)
        SELECT $1, created_ms, status, goal_hash, model_name, fixed,
          replace(head::text, '"workspace":"in_place"', $3)::json, 1, $2
        FROM ${schema}.runs WHERE run_id = 'template'`
      const details = `"error":${JSON.stringify(BAD)},"workspace":"${workspace}"`
      await pool.query(text, [runId, folder, details])
    }
    await insert('shares', null, 'in_place')
    await insert('isolated', null, 'isolated')
    await insert('waits', 'a folder', 'in_place')
    await pool.query(`UPDATE ${schema}.runs SET last_seq = 2, operates = true
      WHERE run_id = 'waits'`)
    await pool.query(`UPDATE ${schema}.runs SET operates = true WHERE run_id = 'shares'`)
    assert.deepEqual(await columns(schema), {
      isolated: [false, false],
      shares: [true, false],
      template: [true, false],
      waits: [false, true],
    })
    await pool.query(`UPDATE ${schema}.runs SET last_seq = 3, operates = false
      WHERE run_id = 'waits'`)
    assert.deepEqual((await columns(schema))['waits'], [false, false])
  })

  test('rows with any text keep no other run from being claimed, listed or answered', async (t) => {
    const schema = newSchema()
    const store = await openStore(t, { pool, schema, listen: false, leaseMs: 600_000 })
    const runs: Record<string, readonly RecordDraft[]> = {
      pending: [],
      'at a gate': [GATE],
      'with a plan': [PLAN],
      'with an error': [PLAN, ERROR],
    }
    for (const [runId, drafts] of Object.entries(runs)) {
      const [created, started] = sampleRun(runId, {
        ...{ status: 'running', records: 2, goal: BAD, modelName: BAD, metadata: { [BAD]: BAD } },
        ...{ cwd: `/${runId}/${BAD}`, ownerId: BAD, tenant: BAD, key: `${runId}${BAD}` },
      }) as [RunCreated, RunRecord]
      const request = { ...created.private!.request, fallback_models: [BAD] }
      const record = { ...created, private: { ...created.private!, request } }
      await admit(store, { ...record, v: versionOf(record) })
      if (drafts.length > 0) await store.append(runId, [started, ...recordsOf(runId, 3, drafts)])
    }
    await admit(store, sampleRun('good', { status: 'pending' })[0] as RunCreated)
    const claimed = async (): Promise<string[]> =>
      (await store.shared.claim(9)).map(({ runId }) => runId).sort()
    assert.deepEqual(await claimed(), ['good', 'pending', 'with a plan', 'with an error'])
    const queries = [{ tenant: BAD }, { goal: BAD }, { modelName: BAD }, { search: BAD }]
    for (const query of [...queries, { metadata: { [BAD]: BAD } }]) {
      const { heads } = await store.list({ ...query, limit: 9 })
      assert.equal(heads.length, 4, JSON.stringify(query))
    }
    const found = await store.findByKey({ id: BAD, tenant: BAD }, `pending${BAD}`, 0)
    assert.equal(found?.details.goal, BAD)
    assert.equal((await store.head('at a gate'))?.details.gate?.summary, BAD)
    await store.shared.requestAbort('at a gate', null)
    assert.deepEqual(await claimed(), ['at a gate'])
    assert.equal((await store.shared.occupy!('at a gate', true)).outcome, 'occupied')
    await store.shared.release('at a gate')
  })

  test('runs go on beside others whose models and tools write any text', async (t) => {
    const schema = newSchema()
    const more = { ...badWriters(), cwdPolicy: 'allow', maxConcurrentRuns: 9 } as const
    const { engine, health, store } = await open(t, schema, scratch(t), more)
    const gate = { goal: 'shell: false', hitl_enabled: true, model_name: 'bad:speaks' }
    const waiting = await engine.create(gate)
    await follow(engine, waiting.details.run_id, atGate)
    for (const [request, endReason] of BAD_RUNS) {
      const { details } = await runToEnd(engine, request)
      assert.equal(details.end_reason, endReason)
      await assertStorable(store, details.run_id)
      const good = await runToEnd(engine, { goal: 'shell: true' })
      assert.equal(good.details.status, 'achieved')
    }
    await assertStorable(store, waiting.details.run_id)
    const { runs } = await engine.list({ endReason: ['max_iterations'], search: 'shell', limit: 9 })
    assert.equal(runs.length, 2)
    assert.equal((await health()).status, 'ok')
    await engine.abort(waiting.details.run_id)
    await follow(engine, waiting.details.run_id)
  })

  for (const [what, damage, isBegun] of [
    ['a head that is none', `UPDATE $schema.runs SET head = '{}'`, true],
    ['a head without fields', `UPDATE $schema.runs SET head = '{"details":{"status":1}}'`, true],
    ['fixed fields that are none', `UPDATE $schema.runs SET fixed = 'null'`, true],
    ['fixed fields of another run', `UPDATE $schema.runs SET fixed = '{"details":{}}'`, false],
    ['a record that is no JSON', `UPDATE $schema.events SET record = 'x'`, false],
    ['a record of another place', `UPDATE $schema.events SET record = '{"seq":7}'`, true],
  ] as const) {
    test(`${what}: the run is skipped and reported, others go on`, async (t) => {
      const schema = newSchema()
      const root = scratch(t)
      const [own, other] = [join(root, 'own'), join(root, 'other')]
      for (const folder of [own, other]) mkdirSync(folder)
      const writer = await openStore(t, { pool, schema, listen: false })
      const status = isBegun ? 'running' : 'pending'
      const [created, ...more] = sampleRun(RUN, { status, cwd: own, records: isBegun ? 2 : 1 })
      await admit(writer, created as RunCreated, 'queue')
      if (more.length > 0) await writer.append(RUN, more)
      await pool.query(`${damage.replace('$schema', schema)} WHERE run_id = '${RUN}'`)
      const warnings = warningsOf(t)
      const { engine, health } = await open(t, schema, root)
      await until(async () => assert.equal(engine.damage().runs[0]?.runId, RUN))
      for (let n = 0; n < 2; n++) {
        // In the same folder, unless the run may have changed something there.
        const { details } = await engine.create({ goal: 'shell: true', cwd: isBegun ? other : own })
        await follow(engine, details.run_id)
        assert.equal((await engine.get(details.run_id)).status, 'achieved')
      }
      const { runs } = await engine.list({ limit: 9 })
      assert.equal(runs.length, 3)
      assert.match(runs.find(({ run_id }) => run_id === RUN)?.problem ?? '', /cannot be read/)
      const { status: reported, damaged, problem } = await health()
      assert.equal(reported, 'damaged')
      assert.deepEqual(damaged, { runs: 1, files: 0 })
      assert.match(problem, /cannot be read/)
      await assert.rejects(engine.get(RUN), { code: 'ERR_AGENT_STORE_CORRUPT' })
      const reports = warnings.filter((text) => text.startsWith(`run ${RUN} is quarantined`))
      assert.equal(reports.length, 1, warnings.join('\n'))
      assert.match(reports[0]!, /restore the database from a backup, or delete the run/)
      await writer.delete(RUN)
      await until(async () => assert.equal((await health()).status, 'ok'))
      assert.deepEqual(engine.damage().runs, [])
    })
  }

  test('an append to a run whose row cannot be read fails alone', async (t) => {
    const schema = newSchema()
    const store = await openStore(t, { pool, schema, listen: false })
    const logs = ['a', 'bad'].map((id) => sampleRun(id, { status: 'running', records: 3 }))
    for (const log of logs) await store.append(log[0]!.run_id, log.slice(0, 2))
    await pool.query(`UPDATE ${schema}.runs SET head = '[]' WHERE run_id = 'bad'`)
    const appends = logs.map((log) => store.append(log[0]!.run_id, log.slice(2)))
    const outcomes = await Promise.allSettled(appends)
    assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', 'rejected'])
    assert.deepEqual(store.damage().runs.map(({ runId }) => runId), ['bad'])
    await store.delete('bad')
    await store.append('bad', logs[1]!)
    assert.deepEqual(store.damage().runs, [])
  })

  test('health is failing while the database refuses every claim', async (t) => {
    const schema = newSchema()
    const warnings = warningsOf(t)
    const { engine, health } = await open(t, schema, scratch(t))
    await pool.query(`CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE 'no claims'; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON ${schema}.runs FOR EACH ROW
      WHEN (NEW.claimed_by IS NOT NULL) EXECUTE FUNCTION ${schema}.refuse()`)
    const { details } = await engine.create({ goal: 'shell: true' })
    await until(async () => assert.equal((await health()).status, 'failing'))
    assert.match((await health()).problem, /rejected a statement: no claims/)
    await pool.query(`DROP TRIGGER refuse ON ${schema}.runs`)
    await follow(engine, details.run_id)
    await until(async () => assert.equal((await health()).status, 'ok'))
    assert.equal(warnings.filter((text) => text.includes('no run can be claimed')).length, 1)
  })
})

const RUN = '01930000-0000-7000-8000-00000000dead'

const PLAN: RecordDraft = {
  kind: 'plan_updated',
  iteration: 0,
  payload: { call_id: 'c', steps: [{ text: BAD, status: 'done' }] },
}
const ERROR: RecordDraft = {
  kind: 'error',
  iteration: 0,
  payload: { message: BAD, traceback: BAD, code: 'ERR_AGENT_INTERNAL' },
}
const GATE: RecordDraft = {
  kind: 'human_check_required',
  iteration: 0,
  payload: {
    iteration: 0,
    summary: BAD,
    gate_id: 'g',
    kind: 'tool',
    deadline: null,
    calls: [{ call_id: 'c', tool: BAD, args: { workspace: 'none', [BAD]: [BAD] } }],
  },
}

/** Records from this sequence number on, as an engine that knows no rule for texts writes them. */
function recordsOf(runId: string, seq: number, drafts: readonly RecordDraft[]): RunRecord[] {
  return drafts.map((draft, i) => ({
    ...{ v: versionOf(draft), run_id: runId, seq: seq + i, ts: 1_700_000_001 },
    ...draft,
  })) as RunRecord[]
}

async function admit(
  { shared }: PostgresStore,
  created: RunCreated,
  cwdPolicy: Admission['cwdPolicy'] = 'allow',
): Promise<void> {
  const admitted = await shared.admit({ created, cwdPolicy, maxQueued: 99, keysSince: 0 })
  assert.deepEqual(admitted, { outcome: 'admitted' })
}

/** `shares_folder` and `operation_open` of each run. */
async function columns(schema: string): Promise<Record<string, readonly unknown[]>> {
  const text = `SELECT run_id, shares_folder, operation_open FROM ${schema}.runs`
  const { rows } = await pool.query(text)
  return Object.fromEntries(
    rows.map(({ run_id, shares_folder, operation_open }) => [
      run_id, [shares_folder, operation_open],
    ]),
  )
}

/** An engine, and the health of a service over it. */
async function open(
  t: TestContext,
  schema: string,
  root: string,
  more: Partial<EngineOptions> = {},
) {
  const store = new PostgresStore({ pool, schema, pollMs: 20 })
  const engine = await RunEngine.open({
    store,
    roots: [root],
    sealedChecks: 'off',
    maxConcurrentRuns: 1,
    providers: [testProvider(() => ({}))],
    defaultModel: 'test:m',
    ...more,
  })
  t.after(() => engine.close())
  const opened = await openService({ engine })
  t.after(() => opened[Symbol.asyncDispose]())
  return { engine, store, health: async () => (await opened.call('GET', '/api/health')).json }
}

/** What this process warns of from now on. */
function warningsOf(t: TestContext): string[] {
  const warnings: string[] = []
  const note = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  return warnings
}
