/**
 * The tables, as a list of migrations. Migrations are never changed, and only add to the schema, so
 * that processes of the previous version keep working next to those of the new one.
 *
 * @module
 */
import { StoreError } from '../../errors.js'
import type { Database, Transaction } from './database.js'
import { CLAIM_COLUMN_STATEMENTS } from './claim-columns.js'
import { LIST_KEY_STATEMENTS } from './list-keys.js'
import { LIST_ORDER_STATEMENTS } from './list-orders.js'
import { FORMAT_STATEMENTS, TREE_FORMAT_STATEMENTS } from './formats.js'
import { HOLDOUT_STATEMENTS } from './holdouts.js'
import { MESSAGE_STATEMENTS } from './messages.js'
import { OBJECT_STATEMENTS } from './objects.js'
import { PLACE_STATEMENTS } from './places.js'
import { TENANT_TURN_STATEMENTS, TREE_STATEMENTS } from './trees.js'

interface Migration {
  readonly version: number
  /** The oldest version whose code works with the schema after this migration. */
  readonly compatibleFrom: number
  /** `$schema` is replaced by the quoted name of the schema. */
  readonly statements: readonly string[]
}

const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    compatibleFrom: 1,
    statements: [
      // Processes. A claim is valid as long as its process's lease.
      `CREATE TABLE $schema.workers (
        worker_id text PRIMARY KEY,
        expires_at timestamptz NOT NULL
      )`,
      // One row per run: the fields by which it is listed, claimed and fenced. Logs are in events.
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
      // The logs. Run ids begin with their time, so ranges of the key are ranges of time, by which
      // the table can be partitioned.
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
      `CREATE INDEX runs_by_key ON $schema.runs (idempotency_key)
        WHERE idempotency_key IS NOT NULL`,
      `CREATE INDEX runs_to_claim ON $schema.runs (queue_number)
        WHERE status IN ('pending', 'running') OR abort_wanted`,
      `CREATE INDEX runs_at_gates ON $schema.runs (gate_deadline_ms)
        WHERE status = 'awaiting_human'`,
      `CREATE INDEX runs_in_folders ON $schema.runs (folder)
        WHERE folder IS NOT NULL AND ended_ms IS NULL`,
      `CREATE UNIQUE INDEX runs_one_in_a_folder ON $schema.runs (folder) WHERE holds_folder`,
      `CREATE INDEX runs_claimed ON $schema.runs (claimed_by) WHERE claimed_by IS NOT NULL`,
      `CREATE INDEX runs_ended ON $schema.runs (ended_ms) WHERE ended_ms IS NOT NULL`,
    ],
  },
  // Nested folders, and folders of other tenants.
  { version: 2, compatibleFrom: 1, statements: PLACE_STATEMENTS },
  // Contents of files.
  { version: 3, compatibleFrom: 1, statements: OBJECT_STATEMENTS },
  // Messages to runs that other processes hold.
  { version: 4, compatibleFrom: 1, statements: MESSAGE_STATEMENTS },
  // Restores and applies: rows that a process has claimed to change files, or has left so.
  {
    version: 5,
    compatibleFrom: 1,
    statements: [
      `ALTER TABLE $schema.runs ADD COLUMN operates boolean NOT NULL DEFAULT false`,
      `CREATE INDEX runs_operating ON $schema.runs (queue_number) WHERE operates`,
    ],
  },
  // Runs that processes of an earlier version must not drive.
  { version: 6, compatibleFrom: 1, statements: FORMAT_STATEMENTS },
  // Held-out tests.
  { version: 7, compatibleFrom: 1, statements: HOLDOUT_STATEMENTS },
  // Trees of runs.
  { version: 8, compatibleFrom: 1, statements: TREE_STATEMENTS },
  // Runs of trees, which processes of an earlier version must not drive.
  { version: 9, compatibleFrom: 1, statements: TREE_FORMAT_STATEMENTS },
  // Lists by folder, end reason and metadata.
  { version: 10, compatibleFrom: 1, statements: LIST_KEY_STATEMENTS },
  // Lists in the order of folders, end reasons and parents.
  { version: 11, compatibleFrom: 1, statements: LIST_ORDER_STATEMENTS },
  // Turns of tenants.
  { version: 12, compatibleFrom: 1, statements: TENANT_TURN_STATEMENTS },
  // What claims ask of heads.
  { version: 13, compatibleFrom: 1, statements: CLAIM_COLUMN_STATEMENTS },
]

const NEWEST = MIGRATIONS.at(-1)?.version ?? 0

/** Checks the name of a schema and quotes it. @throws TypeError that names the option. */
export function quoteSchema(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,40}$/.test(name)) return `"${name}"`
  throw new TypeError(
    'schema must be 1 to 41 lower-case letters, digits and underscores, and must not begin with ' +
      `a digit, got ${JSON.stringify(name)}`,
  )
}

/**
 * Creates or updates the tables. Processes that do so at the same time wait for one another; when
 * there is nothing to do, no right to change the schema is needed.
 *
 * @throws {@link StoreError} with `ERR_AGENT_STORE_VERSION` when a newer version has made the
 * tables incompatible with this one.
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
    // CREATE SCHEMA needs a right that the owner of an existing schema may not have.
    // Reading a table makes the session notice a schema that was created while it waited.
    const exists = `SELECT EXISTS (
      SELECT 1 FROM pg_namespace WHERE oid = to_regnamespace($1)) AS found`
    const [existing] = await rows({ text: exists, values: [schema] })
    if (existing?.['found'] !== true) await rows({ text: `CREATE SCHEMA IF NOT EXISTS ${schema}` })
    await rows({
      text: `CREATE TABLE IF NOT EXISTS ${schema}.migrations (
        version integer PRIMARY KEY,
        compatible_from integer NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`,
    })
    // Again, because a newer version may have migrated while this one waited for the lock.
    const current = await versionOf(rows, schema)
    for (const { version, compatibleFrom, statements } of MIGRATIONS) {
      if (version <= current) continue
      for (const statement of statements) {
        await rows({ text: statement.replaceAll('$schema', schema) })
      }
      const text = `INSERT INTO ${schema}.migrations (version, compatible_from) VALUES ($1, $2)`
      await rows({ text, values: [version, compatibleFrom] })
    }
  })
}

/**
 * Checks tables that the host migrates itself.
 *
 * @throws {@link StoreError} with `ERR_AGENT_STORE_VERSION` when they are missing, too old or too
 * new.
 */
export async function checkVersion(
  database: Database,
  schema: string,
  patienceMs: number,
): Promise<void> {
  const version = await readVersion(database, schema, patienceMs)
  if (version >= NEWEST) return
  const found = version === 0 ? 'has no tables of runwright' : `has tables of version ${version}`
  throw new StoreError(
    'ERR_AGENT_STORE_VERSION',
    `schema ${schema} ${found}, this store needs version ${NEWEST}; ` +
      'call migrate() of the store with a role that may change the schema',
  )
}

/** The version of the existing tables; 0 when there are none. */
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
  return await versionOf((query) => database.rows(query, patienceMs), schema)
}

/** As {@link readVersion}, for a schema that has the table of migrations. */
async function versionOf(rows: Transaction['rows'], schema: string): Promise<number> {
  const text = `SELECT max(version) AS version, max(compatible_from) AS compatible_from
    FROM ${schema}.migrations`
  const [row] = await rows({ text })
  const compatibleFrom = Number(row?.['compatible_from'] ?? 0)
  if (compatibleFrom > NEWEST) {
    throw new StoreError(
      'ERR_AGENT_STORE_VERSION',
      `the tables in schema ${schema} need version ${compatibleFrom} of the store, this one has ` +
        `${NEWEST}; update runwright in this process`,
    )
  }
  return Number(row?.['version'] ?? 0)
}
