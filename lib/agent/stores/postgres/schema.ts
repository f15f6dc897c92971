/**
 * The tables, as a list of migrations. Migrations are never changed, and only add to the schema, so
 * that processes of the previous version keep working next to those of the new one.
 *
 * @module
 */
import { StoreError } from '../../errors.js'
import type { Database, Transaction } from './database.js'
import { FORMAT_STATEMENTS, TREE_FORMAT_STATEMENTS } from './formats.js'
import { HOLDOUT_STATEMENTS } from './holdouts.js'
import { LIST_ORDER_STATEMENTS } from './list-orders.js'
import { MESSAGE_STATEMENTS } from './messages.js'
import { OBJECT_STATEMENTS } from './objects.js'
import { PLACE_STATEMENTS } from './places.js'
import { TENANT_TURN_STATEMENTS, TREE_STATEMENTS } from './trees.js'

/**
 * Columns for what claims ask of a head: whether a run shares its folder, and whether its log says
 * that its files are being changed. No statement reads the text of a head: PostgreSQL's operators
 * on JSON fail on NUL and on halves of characters, and one such row would fail every claim.
 *
 * Appends write them. For rows of processes of an earlier version the database fills them in.
 */

/** The migration that adds them. `$schema` is replaced by the quoted name of the schema. */
const CLAIM_COLUMN_STATEMENTS: readonly string[] = [
  // Null, and false, in rows for which nothing asks it.
  `ALTER TABLE $schema.runs ADD COLUMN shares_folder boolean,
    ADD COLUMN operation_open boolean NOT NULL DEFAULT false`,
  // Heads with `?` in place of what the operators refuse. JSON has a backslash for no other reason
  // than to escape, so one that follows an even number of them begins an escape.
  `CREATE FUNCTION $schema.readable_head(head json) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT regexp_replace(head::text,
      '(?<!\\\\)((?:\\\\\\\\)*)\\\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\1?', 'g')::json
  $$`,
  `CREATE FUNCTION $schema.shares_folder(folder text, head json) RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT folder IS NULL AND coalesce(
      $schema.readable_head(head) -> 'details' ->> 'workspace', 'in_place') = 'in_place'
  $$`,
  // Few rows, however many there are, and found by indexes: live runs that have not asked for their
  // folders, and runs whose files are being changed.
  `UPDATE $schema.runs SET shares_folder = $schema.shares_folder(folder, head)
    WHERE status IN ('pending', 'running', 'awaiting_human') AND folder IS NULL`,
  `UPDATE $schema.runs SET operation_open = true
    WHERE operates AND $schema.readable_head(head) ->> 'operation' IS NOT NULL`,
  `CREATE FUNCTION $schema.set_shares_folder() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.shares_folder := $schema.shares_folder(NEW.folder, NEW.head);
      RETURN NEW;
    END
  $$`,
  `CREATE TRIGGER runs_set_shares_folder BEFORE INSERT ON $schema.runs
    FOR EACH ROW WHEN (NEW.shares_folder IS NULL)
    EXECUTE FUNCTION $schema.set_shares_folder()`,
  // An append of any version leaves `operates` as its log says.
  `CREATE FUNCTION $schema.set_operation_open() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.operation_open := NEW.operates;
      RETURN NEW;
    END
  $$`,
  `CREATE TRIGGER runs_set_operation_open BEFORE UPDATE ON $schema.runs
    FOR EACH ROW WHEN (NEW.last_seq <> OLD.last_seq AND NEW.operation_open <> NEW.operates)
    EXECUTE FUNCTION $schema.set_operation_open()`,
]

/**
 * Columns by which runs are listed: folder, end reason and metadata. The database fills them in
 * itself, so runs of processes of an earlier version have them as well.
 */

/** The migration that adds them. `$schema` is replaced by the quoted name of the schema. */
const LIST_KEY_STATEMENTS: readonly string[] = [
  `ALTER TABLE $schema.runs ADD COLUMN cwd_key text COLLATE "C", ADD COLUMN end_reason text,
    ADD COLUMN metadata_keys text[]`,
  // As `stores/list-query.ts`.
  `CREATE FUNCTION $schema.list_key(json text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT left(translate(encode(sha256(convert_to(json, 'UTF8')), 'base64'), '+/', '-_'), 22)
  $$`,
  // In a text of JSON, a quotation mark inside a string always has a backslash before it.
  `CREATE FUNCTION $schema.metadata_keys_in(fixed json) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_agg($schema.list_key('[' || m[1] || ',' || m[2] || ']'))
    FROM regexp_matches(
      substring(fixed::text FROM '"metadata":(\\{(?:"(?:[^"\\\\]|\\\\.)*"[:,]?)*\\})'),
      '("(?:[^"\\\\]|\\\\.)*"):("(?:[^"\\\\]|\\\\.)*")', 'g') AS m
  $$`,
  `CREATE FUNCTION $schema.end_reason_in(head json) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT substring(head::text FROM '"end_reason":"([a-z_]+)"')
  $$`,
  `CREATE FUNCTION $schema.set_list_keys() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.cwd_key := $schema.list_key('"' || $schema.cwd_in(NEW.fixed) || '"');
      NEW.metadata_keys := $schema.metadata_keys_in(NEW.fixed);
      RETURN NEW;
    END
  $$`,
  `CREATE FUNCTION $schema.set_end_reason() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.end_reason := $schema.end_reason_in(NEW.head);
      RETURN NEW;
    END
  $$`,
  `UPDATE $schema.runs SET cwd_key = $schema.list_key('"' || $schema.cwd_in(fixed) || '"'),
    metadata_keys = $schema.metadata_keys_in(fixed),
    end_reason = CASE WHEN ended_ms IS NOT NULL THEN $schema.end_reason_in(head) END`,
  `CREATE TRIGGER runs_set_list_keys BEFORE INSERT ON $schema.runs
    FOR EACH ROW EXECUTE FUNCTION $schema.set_list_keys()`,
  `CREATE TRIGGER runs_set_end_reason BEFORE INSERT OR UPDATE ON $schema.runs
    FOR EACH ROW WHEN (NEW.ended_ms IS NOT NULL AND NEW.end_reason IS NULL)
    EXECUTE FUNCTION $schema.set_end_reason()`,
  `CREATE INDEX runs_by_cwd ON $schema.runs (cwd_key, created_ms DESC, run_id DESC)`,
  `CREATE INDEX runs_by_end_reason ON $schema.runs (end_reason, created_ms DESC, run_id DESC)
    WHERE end_reason IS NOT NULL`,
  `CREATE INDEX runs_by_metadata ON $schema.runs USING gin (metadata_keys)
    WHERE metadata_keys IS NOT NULL`,
]

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
