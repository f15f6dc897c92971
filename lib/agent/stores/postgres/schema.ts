/**
 * The tables, as a list of migrations. A migration is only ever added, and only adds: processes of
 * the version before go on working beside those of the new one.
 *
 * @module
 */
import { StoreError } from '../../errors.js'
import type { Database } from './database.js'

/** One step of the schema. `$schema` stands for the quoted name of the schema. */
interface Migration {
  readonly version: number
  /** The oldest version of this list whose code works with the schema after this step. */
  readonly compatibleFrom: number
  readonly statements: readonly string[]
}

const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    compatibleFrom: 1,
    statements: [
      // Processes. A run belongs to a process as long as the process's lease lasts.
      `CREATE TABLE $schema.workers (
        worker_id text PRIMARY KEY,
        expires_at timestamptz NOT NULL
      )`,
      // One row per run: what it is listed, claimed and fenced by. The log is in events.
      `CREATE TABLE $schema.runs (
        run_id text COLLATE "C" PRIMARY KEY,
        queue_number bigint GENERATED ALWAYS AS IDENTITY,
        created_ms double precision NOT NULL,
        ended_ms double precision,
        status text NOT NULL,
        goal_hash text NOT NULL,
        model_name text NOT NULL,
        owner_id text,
        tenant text,
        idempotency_key text,
        search_text text NOT NULL DEFAULT '',
        fixed json NOT NULL,
        head json NOT NULL,
        last_seq integer NOT NULL,
        folder text,
        holds_folder boolean NOT NULL DEFAULT false,
        labels text[] NOT NULL DEFAULT '{}',
        gate_deadline_ms double precision,
        abort_wanted boolean NOT NULL DEFAULT false,
        abort_by text,
        claimed_by text,
        fence bigint NOT NULL DEFAULT 0
      ) WITH (fillfactor = 70)`,
      // The log. Its key begins with the run, whose ids begin with their time: ranges of it are
      // ranges of time, by which the table can be partitioned.
      `CREATE TABLE $schema.events (
        run_id text COLLATE "C" NOT NULL,
        seq integer NOT NULL,
        record text NOT NULL,
        PRIMARY KEY (run_id, seq)
      )`,
      `CREATE INDEX runs_newest ON $schema.runs (created_ms DESC, run_id DESC)`,
      `CREATE INDEX runs_by_status ON $schema.runs (status, created_ms DESC, run_id DESC)`,
      `CREATE INDEX runs_by_tenant ON $schema.runs (tenant, created_ms DESC, run_id DESC)`,
      `CREATE INDEX runs_by_goal ON $schema.runs (goal_hash, created_ms DESC, run_id DESC)`,
      `CREATE INDEX runs_by_model ON $schema.runs (model_name, created_ms DESC, run_id DESC)`,
      `CREATE INDEX runs_by_key ON $schema.runs (idempotency_key) WHERE idempotency_key IS NOT NULL`,
      `CREATE INDEX runs_to_claim ON $schema.runs (queue_number)
        WHERE status IN ('pending', 'running') OR abort_wanted`,
      `CREATE INDEX runs_at_gates ON $schema.runs (gate_deadline_ms) WHERE status = 'awaiting_human'`,
      `CREATE INDEX runs_in_folders ON $schema.runs (folder) WHERE folder IS NOT NULL AND ended_ms IS NULL`,
      `CREATE UNIQUE INDEX runs_one_in_a_folder ON $schema.runs (folder) WHERE holds_folder`,
      `CREATE INDEX runs_claimed ON $schema.runs (claimed_by) WHERE claimed_by IS NOT NULL`,
      `CREATE INDEX runs_ended ON $schema.runs (ended_ms) WHERE ended_ms IS NOT NULL`,
    ],
  },
]

const NEWEST = MIGRATIONS.at(-1)?.version ?? 0

/** Checks the name of a schema and quotes it. @throws TypeError naming the option. */
export function quoteSchema(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,40}$/.test(name)) return `"${name}"`
  throw new TypeError(
    `schema must be 1 to 41 lower-case letters, digits and underscores, not beginning with a digit, got ${JSON.stringify(name)}`,
  )
}

/**
 * Makes or updates the tables. Processes that do so at the same time wait for one another; one that
 * finds nothing to do needs no right to change the schema.
 *
 * @throws {@link StoreError} with `ERR_AGENT_STORE_VERSION` when a newer version has changed the
 * tables so that this one cannot work with them.
 */
export async function migrate(
  database: Database,
  schema: string,
  patienceMs: number,
): Promise<void> {
  if ((await readVersion(database, schema, patienceMs)) >= NEWEST) return
  await database.transaction(patienceMs, async ({ rows }) => {
    const lock = `SELECT pg_advisory_xact_lock(hashtext($1), 0)`
    await rows({ text: lock, values: [`runwright migrate ${schema}`] })
    // Asked for beforehand: a role that may not make schemas may own one that was made for it.
    const [there] = await rows({
      text: 'SELECT to_regnamespace($1) IS NOT NULL AS found',
      values: [schema],
    })
    if (there?.['found'] !== true) await rows({ text: `CREATE SCHEMA IF NOT EXISTS ${schema}` })
    await rows({
      text: `CREATE TABLE IF NOT EXISTS ${schema}.migrations (
        version integer PRIMARY KEY,
        compatible_from integer NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`,
    })
    const done = await rows({
      text: `SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations`,
    })
    const current = Number(done[0]?.['version'] ?? 0)
    for (const { version, compatibleFrom, statements } of MIGRATIONS) {
      if (version <= current) continue
      for (const statement of statements)
        await rows({ text: statement.replaceAll('$schema', schema) })
      const text = `INSERT INTO ${schema}.migrations (version, compatible_from) VALUES ($1, $2)`
      await rows({ text, values: [version, compatibleFrom] })
    }
  })
}

/**
 * Checks tables that somebody else makes and updates.
 *
 * @throws {@link StoreError} with `ERR_AGENT_STORE_VERSION` when they are not there yet, too old or
 * too new.
 */
export async function checkVersion(
  database: Database,
  schema: string,
  patienceMs: number,
): Promise<void> {
  const version = await readVersion(database, schema, patienceMs)
  if (version >= NEWEST) return
  const found = version === 0 ? 'has no tables of runwright' : `has tables of version ${version}`
  const message = `schema ${schema} ${found}, and this is version ${NEWEST}; call migrate() of the store with a role that may change it`
  throw new StoreError('ERR_AGENT_STORE_VERSION', message)
}

/** The version of the tables that are there; 0 when there are none. */
async function readVersion(
  database: Database,
  schema: string,
  patienceMs: number,
): Promise<number> {
  const found = await database.rows(
    { text: `SELECT to_regclass($1) IS NOT NULL AS found`, values: [`${schema}.migrations`] },
    patienceMs,
  )
  if (found[0]?.['found'] !== true) return 0
  const text = `SELECT max(version) AS version, max(compatible_from) AS compatible_from FROM ${schema}.migrations`
  const [row] = await database.rows({ text }, patienceMs)
  const compatibleFrom = Number(row?.['compatible_from'] ?? 0)
  if (compatibleFrom > NEWEST) {
    throw new StoreError(
      'ERR_AGENT_STORE_VERSION',
      `the tables in schema ${schema} need version ${compatibleFrom} of the store, this is ${NEWEST}; update runwright in this process`,
    )
  }
  return Number(row?.['version'] ?? 0)
}
