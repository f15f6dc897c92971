/** Processes of an earlier version and of this one on one database, as during an upgrade. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as current from 'runwright/agent'
import type {
  AgentEvent,
  EngineOptions,
  PostgresStore,
  RunDetails,
  RunEngine,
  RunQuery,
  RunRecord,
} from 'runwright/agent'
import { versionOf } from '../../../lib/agent/log/changes/index.js'
import type { RunCreated } from '../../../lib/agent/events.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { millionTests } from '../../agent/goals/million-tests.js'
import { ADVISORY_LOCKS, noPostgres, openDatabase } from './postgres.js'
import { openStore } from './stores.js'
import { Workers } from './workers.js'

const LEASE_MS = 800
const BUNDLE = new URL('../../fixtures/versions/agent-1.mjs', import.meta.url)

/** A version: as a library here, and as what workers load. */
interface Version {
  readonly library: typeof current
  readonly bundle: string | undefined
}

const { connection, newSchema, pool } = await openDatabase()

const rowsOf = ({ rows }: { readonly rows: readonly unknown[] }): readonly unknown[] => rows

/** How a run comes to have what version 1 would misread; resolves when nobody holds it. */
const MISREAD: Readonly<
  Record<string, (store: PostgresStore, created: RunCreated, schema: string) => Promise<void>>
> = {
  'an isolated run': async (store, created) => {
    const payload = { ...created.payload, workspace: 'isolated' } as const
    await admitted(store, { ...created, v: 2, payload })
  },
  'a run that was stored at once': (store, created) =>
    store.append(created.run_id, [{ ...created, v: 2 }]),
  'a message in the log': async (store, created) => {
    await admitted(store, created)
    const { run_id, iteration, ts } = created
    const fields = { v: 2, seq: 2, run_id, iteration, ts } as const
    await store.append(run_id, [{ ...fields, kind: 'user_message', payload: MESSAGE }])
  },
  'a run whose first check is kept by hash': async (store, created) => {
    await admitted(store, created)
    await store.append(created.run_id, [millionTests(created.run_id, 2)])
  },
  'a run with held-out tests': async (store, created) => {
    await admitted(store, withPrivate(created, { holdout: { key: 'k' } }))
  },
  'a run that requires sealed checks': async (store, created) => {
    const request = { ...created.private!.request, sealed_checks: 'require' } as const
    await admitted(store, withPrivate(created, { request }))
  },
  'a message for a holder that has died': async (store, created, schema) => {
    await admitted(store, created)
    assert.equal((await store.shared.claim(1)).length, 1)
    await pool.query(`UPDATE ${schema}.workers SET expires_at = '2020-01-01'
      WHERE worker_id = (SELECT claimed_by FROM ${schema}.runs WHERE run_id = 'new')`)
    const other = new current.PostgresStore({ pool, schema })
    await other.open()
    assert.equal(await other.shared.leaveMessage(created.run_id, MESSAGE), 'kept')
    await other.close()
  },
}

/** How a run comes to have what format 3 would misread: trees of runs, and what they are told. */
const TREES: typeof MISREAD = {
  'a run with some tools': async (store, created) => {
    const request = { ...created.private!.request, tools: ['read_file'] }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run with approvals by tool': async (store, created) => {
    const approval = { default: 'never', tools: { bash: 'always' } } as const
    const request = { ...created.private!.request, approval }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run with fallback models': async (store, created) => {
    const request = { ...created.private!.request, fallback_models: ['m'] }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run with images': async (store, created) => {
    const images = [{ media_type: 'image/png', data: 'YQ==' }] as const
    const request = { ...created.private!.request, images }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run that another model has taken over': async (store, created) => {
    await admitted(store, created)
    const { run_id, iteration, ts } = created
    const payload = { from: 'a', to: 'b', cause: 'error', message: 'no' } as const
    const record = { kind: 'model_switched', iteration, payload } as const
    await store.append(run_id, [{ v: versionOf(record), seq: 2, run_id, ts, ...record }])
  },
  'a run with a result': async (store, created) => {
    const request = { ...created.private!.request, result_schema: { type: 'object' } }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run with instructions': async (store, created) => {
    const request = { ...created.private!.request, instructions: 'Be kind.' }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run with attempts': async (store, created) => {
    const attempts = { count: 2, models: ['m'], choose: 'first' } as const
    const record = { ...created, payload: { ...created.payload, attempts } }
    await admitted(store, { ...record, v: versionOf(record) })
  },
  'a run that another one has started': (store, created) => admitted(store, asChild(created)),
  'a run that may start others': async (store, created) => {
    const request = { ...created.private!.request, delegation: { depth: 1, children: 2 } }
    await admitted(store, withPrivate(created, { request }))
  },
  'a run that has started another one': async (store, created) => {
    await admitted(store, created)
    const { run_id, iteration, ts } = created
    const payload = {
      call_id: 'c', number: 1, run_id: 'child', goal: 'g', checkpoint_id: '0'.repeat(64),
    }
    const record = { kind: 'delegate_started', iteration, payload } as const
    await store.append(run_id, [{ v: versionOf(record), seq: 2, run_id, ts, ...record }])
  },
}

/** A process of format 3 has this label, and no other that tells its version. */
const FORMAT_3: readonly string[] = ['runwright: format 2']

function asChild(created: RunCreated): RunCreated {
  const place = { parent_run_id: 'root', root_run_id: 'root', role: 'attempt' } as const
  const record = { ...created, payload: { ...created.payload, ...place } }
  return { ...record, v: versionOf(record) }
}

const MESSAGE = { message_id: 'm', text: 'also b', deliver: 'next_turn', by: null } as const

/** The record that a run begins with, in the format that these private fields need. */
function withPrivate(
  created: RunCreated,
  fields: Partial<NonNullable<RunCreated['private']>>,
): RunCreated {
  const record = { ...created, private: { ...created.private!, ...fields } }
  return { ...record, v: versionOf(record) }
}

async function admitted(store: PostgresStore, created: RunCreated): Promise<void> {
  const terms = { cwdPolicy: 'queue', maxQueued: 9, keysSince: 0 } as const
  assert.deepEqual(await store.shared.admit({ created, ...terms }), { outcome: 'admitted' })
}

describe('versions that share a PostgresStore', { skip: noPostgres }, () => {
  const versions: Record<string, Version> = {}
  before(async () => {
    versions['version 1'] = {
      library: (await import(BUNDLE.href)) as typeof current,
      bundle: fileURLToPath(BUNDLE),
    }
    versions['this version'] = { library: current, bundle: undefined }
  })

  for (const [first, second] of [
    ['version 1', 'this version'],
    ['this version', 'version 1'],
  ] as const) {
    test(`${first}, then ${second}: runs, gates, aborts and readers cross over`, async (t) => {
      const [a, b] = [versions[first]!, versions[second]!]
      const cluster = await Cluster.open(t, a, b)
      await cluster.takeOver(a, b)
      await cluster.takeOver(b, a)
      for (const [before, after] of [[a, b], [b, a]] as const) {
        await cluster.gate(before, after)
        await cluster.abort(before)
      }
      const calls = readFileSync(cluster.marks, 'utf8').split('\n').filter(Boolean)
      assert.equal(new Set(calls).size, calls.length, 'no unsafe call ran twice')
    })
  }

  test('a schema of a newer version is refused by name, and nothing in it changes', async (t) => {
    const schema = newSchema()
    await (await openStore(t, { pool, schema })).append('a', sampleRun('a'))
    await pool.query(`INSERT INTO "${schema}".migrations (version, compatible_from) VALUES (99, 98)`)
    await pool.query(`ALTER TABLE "${schema}".runs ADD COLUMN newer text`)
    const before = await contents(schema)
    const refused = {
      code: 'ERR_AGENT_STORE_VERSION',
      message: /schema "s\d+" need version 98 of the store, this one has 13; update runwright/,
    }
    for (const migrate of [true, false]) {
      const store = new current.PostgresStore({ pool, schema, migrate })
      await assert.rejects(store.open(), refused)
      await assert.rejects(store.migrate(), refused)
      await store.close()
    }
    assert.deepEqual(await contents(schema), before)
  })

  test('tables that a newer version makes while this one waits for them are refused', async (t) => {
    const schema = newSchema()
    const newer = await pool.connect()
    t.after(() => newer.release())
    await newer.query(`BEGIN; SELECT pg_advisory_xact_lock(hashtext('runwright migrate "${schema}"'), 0)`)
    const store = new current.PostgresStore({ pool, schema })
    const opening = store.open()
    opening.catch(() => undefined)
    const waiting = `SELECT 1 ${ADVISORY_LOCKS} AND NOT granted`
    while ((await pool.query(waiting)).rowCount === 0);
    await newer.query(`CREATE SCHEMA "${schema}"; CREATE TABLE "${schema}".migrations (
      version integer PRIMARY KEY, compatible_from integer NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now());
      INSERT INTO "${schema}".migrations (version, compatible_from) VALUES (99, 99); COMMIT`)
    await assert.rejects(opening, { code: 'ERR_AGENT_STORE_VERSION' })
    await store.close()
  })

  test('runs of an earlier version are listed by folder, end reason and metadata', async (t) => {
    const schema = newSchema()
    const old = new versions['version 1']!.library.PostgresStore({ pool, schema, listen: false })
    await old.open()
    t.after(() => old.close())
    const metadata = { team: 'red', 'a"}': '{":,\u0000' }
    const store = async (runId: string, cwd: string): Promise<void> =>
      await old.append(runId, sampleRun(runId, { cwd, metadata }))
    await store('before', '/a')
    const reader = await openStore(t, { pool, schema, listen: false })
    const { length } = await pool.query(`SELECT 1 FROM "${schema}".migrations`).then(rowsOf)
    assert.equal(length, 13)
    await store('after', '/b')
    const [created, started, log, end] = sampleRun('later', { cwd: '/"', createdAt: 1.9e9 })
    await old.append('later', [created!, started!])
    const listed = async (query: Partial<RunQuery>): Promise<string> =>
      (await reader.list({ limit: 9, ...query })).heads
        .map(({ details }) => details.run_id).join(' ')
    assert.equal(await listed({ cwd: '/a', metadata }), 'before')
    assert.equal(await listed({ cwd: '/b', endReason: ['goal_achieved'] }), 'after')
    assert.equal(await listed({ cwd: '/"' }), 'later')
    assert.equal(await listed({ metadata, sort: 'created_at' }), 'after before')
    assert.equal(await listed({ endReason: ['goal_achieved'] }), 'before after')
    await old.append('later', [log!, end!])
    assert.equal(await listed({ endReason: ['goal_achieved'] }), 'later before after')
    assert.equal(await listed({ sort: 'cwd' }), 'later before after')
    assert.equal(await listed({ sort: '-cwd' }), 'after before later')
  })

  const misread = [
    ...Object.entries(MISREAD).map(([what, store]) => ['version 1', [], what, store] as const),
    ...Object.entries(TREES).map(([what, store]) => ['format 3', FORMAT_3, what, store] as const),
  ]
  for (const [who, labels, what, store] of misread) {
    test(`${who} does not claim ${what}, and claims what comes later`, async (t) => {
      const schema = newSchema()
      const options = { pool, schema, listen: false, leaseMs: 600_000 } as const
      const writer = await openStore(t, options)
      const old = new versions['version 1']!.library.PostgresStore({ ...options, labels })
      await old.open()
      t.after(() => old.close())
      const [created] = sampleRun('new', { status: 'pending' }) as [RunCreated]
      await store(writer, created, schema)
      const [plain] = sampleRun('plain', { status: 'pending', cwd: '/elsewhere' }) as [RunCreated]
      await admitted(writer, plain)
      const claimed = async (by: PostgresStore): Promise<readonly string[]> =>
        (await by.shared.claim(1)).map(({ runId }) => runId)
      assert.deepEqual(await claimed(old), ['plain'])
      assert.deepEqual(await claimed(old), [])
      const reader = await openStore(t, options)
      assert.deepEqual(await claimed(reader), ['new'])
      // The label is no part of the folder.
      const terms = { cwdPolicy: 'reject', maxQueued: 9, keysSince: 0 } as const
      const busy = await writer.shared.admit({ created: { ...created, run_id: 'b' }, ...terms })
      if (what !== 'an isolated run') assert.deepEqual(busy, { outcome: 'cwd_busy', runId: 'new' })
      assert.equal(await writer.hasForeignRun(created.payload.cwd, 'stranger'), true)
    })
  }

  for (const [what, store] of Object.entries(TREES)) {
    test(`an earlier version does not end ${what}, and this one does`, async (t) => {
      const schema = newSchema()
      const options = { pool, schema, listen: false, leaseMs: 600_000 } as const
      const writer = await openStore(t, options)
      const [created] = sampleRun('new', { status: 'pending' }) as [RunCreated]
      await store(writer, created, schema)
      const [plain] = sampleRun('plain', { status: 'pending', cwd: '/elsewhere' }) as [RunCreated]
      await admitted(writer, plain)
      for (const labels of [[], FORMAT_3]) {
        const old = new versions['version 1']!.library.PostgresStore({ ...options, labels })
        await old.open()
        await old.shared.requestAbort('new', null)
        await old.shared.requestAbort('plain', null)
        const claimed = await old.shared.claim(1)
        assert.deepEqual(claimed.map(({ runId }) => runId), ['plain'])
        // Lists and other runs are there for it.
        const { heads } = await old.list({ limit: 9 })
        assert.deepEqual(heads.map(({ details }) => details.run_id).sort(), ['new', 'plain'])
        assert.equal((await old.read('plain', 0, 9)).length, 1)
        await old.shared.release('plain')
        await old.close()
      }
      const [claim] = await writer.shared.claim(1)
      assert.deepEqual([claim?.runId, claim?.abort], ['new', { by: null }])
    })
  }

  test('an earlier version claims no run of a tree, which this one drives to its end', async (t) => {
    const schema = newSchema()
    const root = scratch(t)
    const [tree, other] = [join(root, 'tree'), join(root, 'other')]
    for (const folder of [tree, other]) mkdirSync(folder)
    writeFileSync(join(tree, 'a'), 'old\n')
    const workspaceFolder = scratch(t)
    const writes = testProvider(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: 'done' }
        : { calls: [{ tool: 'write_file', args: { path: 'a', content: 'new\n' } }] },
    )
    const providers = [writes]
    const front = await open(t, current, schema, root, { workspaceFolder, providers })
    await pool.query(`CREATE TABLE ${schema}.claims (run_id text, worker_id text);
      CREATE FUNCTION ${schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO ${schema}.claims VALUES (NEW.run_id, NEW.claimed_by); RETURN NULL; END $$;
      CREATE TRIGGER note AFTER UPDATE ON ${schema}.runs FOR EACH ROW
        WHEN (NEW.claimed_by IS DISTINCT FROM OLD.claimed_by AND NEW.claimed_by IS NOT NULL)
        EXECUTE FUNCTION ${schema}.note()`)
    const { library } = versions['version 1']!
    const old = await open(t, library, schema, root, { providers }, ['worker', ...FORMAT_3])
    const attempts = { count: 2, models: ['test:m'] }
    const { details } = await front.create({ goal: 'shell: grep -q new a', cwd: tree, attempts })
    const plain = async (): Promise<void> => {
      const { details } = await front.create({ goal: 'shell: true', cwd: other })
      await follow(old, details.run_id)
    }
    await plain()
    assert.equal((await old.get(details.run_id)).status, 'pending')
    assert.equal((await old.list()).runs.length, 2)
    await open(t, current, schema, root, { workspaceFolder, providers }, ['worker'])
    await Promise.all([follow(front, details.run_id), plain()])
    const { status, final_state: { goal_reason: reason }, error } = await front.get(details.run_id)
    assert.equal(status, 'achieved', `${reason} ${JSON.stringify(error)}`)
    assert.equal(readFileSync(join(tree, 'a'), 'utf8'), 'new\n')
    const text = `SELECT w.format < 4 AS old, r.root_run_id IS NOT NULL OR r.run_id = $1 AS in_tree,
        count(*)::integer > 0 AS some
      FROM ${schema}.claims c JOIN ${schema}.workers w USING (worker_id)
      JOIN ${schema}.runs r USING (run_id) GROUP BY 1, 2 ORDER BY 1, 2 DESC`
    const { rows } = await pool.query(text, [details.run_id])
    assert.deepEqual(rows[0], { old: false, in_tree: true, some: true })
    assert.deepEqual(rows.filter((row) => row.old), [{ old: true, in_tree: false, some: true }])
  })

  test('version 1 ends an isolated run and never works in its folder', async (t) => {
    const schema = newSchema()
    const root = scratch(t)
    const isolated = { goal: 'shell: grep -q new a', cwd: root, workspace: 'isolated' }
    writeFileSync(join(root, 'a'), 'old\n')
    const workspaceFolder = scratch(t)
    const writes = testProvider(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: 'done' }
        : { calls: [{ tool: 'write_file', args: { path: 'a', content: 'new\n' } }] },
    )
    const providers = [writes]
    const front = await open(t, current, schema, root, { workspaceFolder, providers })
    const { library } = versions['version 1']!
    const old = await open(t, library, schema, root, { providers }, ['worker'])
    const [first, second] = [await front.create(isolated), await front.create(isolated)]
    const plain = await front.create({ goal: 'shell: true', cwd: root })
    await follow(front, plain.details.run_id)
    for (const { details } of [first, second])
      assert.equal((await front.get(details.run_id)).status, 'pending')
    await old.abort(first.details.run_id)
    await follow(front, first.details.run_id)
    assert.equal((await front.get(first.details.run_id)).status, 'aborted')
    await open(t, current, schema, root, { workspaceFolder, providers }, ['worker'])
    await follow(front, second.details.run_id)
    const { status, changes } = await front.get(second.details.run_id)
    assert.deepEqual({ status, changes }, { status: 'achieved', changes: 'pending' })
    assert.equal(readFileSync(join(root, 'a'), 'utf8'), 'old\n')
  })

  test('a run that a newer version continued is refused by name, others go on', async (t) => {
    const schema = newSchema()
    const root = scratch(t)
    const store = await openStore(t, { pool, schema })
    const [created, started] = sampleRun('newer', { status: 'running', records: 2 })
    const record = { ...started, v: 5 } as unknown as RunRecord
    await store.append('newer', [created!, record])
    const warnings: string[] = []
    const onWarning = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', onWarning)
    t.after(() => process.off('warning', onWarning))
    const engine = await open(t, current, schema, root, { maxConcurrentRuns: 1 })
    for (let n = 0; n < 3; n++) {
      const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
      assertInvariants(await follow(engine, details.run_id))
    }
    const refused = { code: 'ERR_AGENT_STORE_VERSION', message: /run newer .* format 5, .* update/ }
    await assert.rejects(engine.events('newer', { after: 0, limit: 10 }), refused)
    await assert.rejects(follow(engine, 'newer'), refused)
    const { rows } = await pool.query(`SELECT fence FROM "${schema}".runs WHERE run_id = 'newer'`)
    assert.deepEqual(rows, [{ fence: '1' }], 'it was claimed once')
    assert.equal(warnings.filter((text) => text.includes('run newer')).length, 1)
    assert.equal((await store.head('newer'))?.details.last_seq, 2)
  })
})

/** Engines of both versions that accept requests and read, and workers that drive the runs. */
class Cluster {
  readonly marks: string
  readonly #root: string
  readonly #workers: Workers
  readonly #engines: ReadonlyMap<Version, RunEngine>

  private constructor(
    root: string,
    marks: string,
    workers: Workers,
    engines: ReadonlyMap<Version, RunEngine>,
  ) {
    this.marks = marks
    this.#root = root
    this.#workers = workers
    this.#engines = engines
  }

  /** The first version makes the tables. */
  static async open(t: TestContext, first: Version, second: Version): Promise<Cluster> {
    const schema = newSchema()
    const root = scratch(t)
    const marks = join(root, 'marks')
    writeFileSync(marks, '')
    const terms = { leaseMs: LEASE_MS, patienceMs: 60_000, slots: 4 }
    const workers = new Workers(t, { connection, schema, root, marks, ...terms })
    t.after(() => workers.killAll())
    const engines = new Map<Version, RunEngine>()
    for (const version of [first, second])
      engines.set(version, await open(t, version.library, schema, root))
    return new Cluster(root, marks, workers, engines)
  }

  /** A run of one version is continued by the other after the death of its process. */
  async takeOver(before: Version, after: Version): Promise<void> {
    const worker = await this.#start(before)
    const runId = await this.#create(after, { max_iterations: 60 })
    await follow(this.#of(before), runId, ({ iteration }) => iteration === 2)
    const heir = await this.#start(after)
    await this.#workers.kill(worker)
    const events = await this.#end(runId)
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 1)
    assert.equal(events.at(-1)?.iteration, 60)
    await this.#workers.kill(heir)
  }

  /** A gate of one version is answered at the other, where the run continues. */
  async gate(before: Version, after: Version): Promise<void> {
    const worker = await this.#start(before)
    const runId = await this.#create(before, { max_iterations: 2, hitl_enabled: true })
    await follow(this.#of(after), runId, ({ kind }) => kind === 'human_check_required')
    await this.#workers.kill(worker)
    const heir = await this.#start(after)
    const { gate_id } = (await this.#of(before).get(runId)).gate!
    await this.#of(after).resume(runId, { decision: 'approve', gate_id, feedback: 'go on' })
    await this.#of(before).resume(runId, { decision: 'approve', gate_id })
    const events = await this.#end(runId)
    assert.equal(events.filter(({ kind }) => kind === 'human_check_response').length, 1)
    assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 0)
    await this.#workers.kill(heir)
  }

  /** A run that one version drives is aborted at the other. */
  async abort(driver: Version): Promise<void> {
    const worker = await this.#start(driver)
    for (const [version, engine] of this.#engines) {
      const runId = await this.#create(version, { max_iterations: 1000 })
      await follow(engine, runId, ({ iteration }) => iteration === 1)
      await engine.abort(runId)
      assert.equal((await this.#end(runId)).at(-1)?.kind, 'run_end')
      assert.equal((await engine.get(runId)).status, 'aborted')
    }
    await this.#workers.kill(worker)
  }

  #of(version: Version): RunEngine {
    return this.#engines.get(version)!
  }

  async #start({ bundle }: Version): Promise<ChildProcess> {
    const [worker] = await this.#workers.start(1, {
      library: bundle,
      sealedChecks: 'prefer',
    })
    return worker!
  }

  async #create(version: Version, request: Record<string, unknown>): Promise<string> {
    const whole = { goal: 'shell: false', cwd: this.#root, ...request }
    return (await this.#of(version).create(whole)).details.run_id
  }

  /** The log of a run once it has ended, the same for readers of both versions. */
  async #end(runId: string): Promise<readonly AgentEvent[]> {
    const logs = await Promise.all(
      [...this.#engines.values()].map((engine) => follow(engine, runId)),
    )
    assertInvariants(logs[0]!)
    assert.deepEqual(logs[1], logs[0])
    const engines = [...this.#engines.values()]
    const details = engines.map(async (engine) => known(await engine.get(runId)))
    assert.deepEqual(await details[1], await details[0])
    return logs[0]!
  }
}

/** Fields of details that version 1 does not have, with the values that say nothing new. */
const LATER_FIELDS: Readonly<Record<string, unknown>> = {
  role: 'root', attempts: null, delegation: null, delegates: 0, instructions: null,
  project_instructions: null, tools: null, temperature: null, reasoning_effort: null,
  max_output_tokens: null, plan: null, fallback_models: null, usage_by_model: null, images: 0,
  result_schema: null, result: null, held_back: null,
  changed_tests: null, allowed: null, may_change: null,
}
/** Others, with values of their own. */
const LATER_VALUES: ReadonlySet<string> = new Set([
  'workspace', 'checkpoint_id', 'changes', 'forked_from', 'assurance', 'check_files',
  'root_run_id', 'compaction', 'active_model', 'answer',
])

/** Details without the fields that version 1 does not have. */
function known(details: RunDetails): unknown {
  const { usage, ...rest } = details
  const { estimated_tokens: estimated = 0, ...counted } = usage
  assert.equal(estimated, 0)
  assert.notEqual(rest.workspace, 'isolated')
  const old = Object.entries(rest).filter(([name, value]) => {
    if (Object.hasOwn(LATER_FIELDS, name)) assert.deepEqual(value, LATER_FIELDS[name], name)
    return !Object.hasOwn(LATER_FIELDS, name) && !LATER_VALUES.has(name)
  })
  return { ...Object.fromEntries(old), usage: counted }
}

async function open(
  t: TestContext,
  { PostgresStore, RunEngine: Engine }: typeof current,
  schema: string,
  root: string,
  more: Partial<EngineOptions> = {},
  labels: readonly string[] = [],
): Promise<RunEngine> {
  const labelsFor = (): readonly string[] => ('maxConcurrentRuns' in more ? [] : ['worker'])
  const engine = await Engine.open({
    // No engine dies here: on a busy machine, a short lease is lost to one that merely waits.
    store: new PostgresStore({ pool, schema, leaseMs: 60_000, labels, labelsFor, pollMs: 50 }),
    roots: [root],
    defaultModel: 'test:m',
    providers: [testProvider(() => ({}))],
    ...more,
  })
  t.after(() => engine.close())
  return engine
}

/** Everything that a store might change in a schema. */
async function contents(schema: string): Promise<unknown> {
  const columns = await pool.query(
    `SELECT table_name, column_name, data_type FROM information_schema.columns
     WHERE table_schema = $1 ORDER BY 1, 2`,
    [schema],
  )
  const indexes = await pool.query(
    `SELECT indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY 1`,
    [schema],
  )
  const tables = ['migrations', 'runs', 'events'].map(async (table) =>
    (await pool.query(`SELECT * FROM "${schema}".${table} ORDER BY 1`)).rows,
  )
  const workers = await pool.query(`SELECT worker_id FROM "${schema}".workers ORDER BY 1`)
  return [columns.rows, indexes.rows, await Promise.all(tables), workers.rows]
}
