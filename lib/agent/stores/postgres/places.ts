/**
 * Places: the folders of runs in a form in which "the same, above or below" is a comparison of
 * prefixes. A place is the real path as in JSON, with a slash at its end, behind a hash of the
 * run's labels. The database makes them itself, so runs of processes of an earlier version have
 * one as well.
 *
 * @module
 */
import type { RunHead } from '../../run-details.js'
import type { PgQuery } from './pg-types.js'
import { keyText } from './run-rows.js'

/** The migration that adds places. `$schema` is replaced by the quoted name of the schema. */
export const PLACE_STATEMENTS: readonly string[] = [
  `ALTER TABLE $schema.runs
    ADD COLUMN place text COLLATE "C", ADD COLUMN place_tenant text COLLATE "C"`,
  // An index holds no longer ones. Deeper folders share the place of one above, which is safe.
  `CREATE FUNCTION $schema.place_of(cwd text, labels text[]) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN length(p) <= 600 THEN p ELSE substring(left(p, 600) FROM '^.*/') END
    FROM (SELECT rtrim(cwd, '/') || '/') AS c(path), LATERAL (
      SELECT CASE WHEN cwd = '' THEN NULL WHEN cardinality(labels) = 0 THEN path
        ELSE encode(sha256(convert_to(to_json(labels)::text, 'UTF8')), 'hex') || path END
    ) AS whole(p)
  $$`,
  `CREATE FUNCTION $schema.place_tenant_of(tenant text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(encode(sha256(convert_to(tenant, 'UTF8')), 'hex'), '')
  $$`,
  // In a text of JSON, a quotation mark inside a string always has a backslash before it.
  `CREATE FUNCTION $schema.cwd_in(fixed json) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT substring(fixed::text FROM '"cwd":"((?:[^"\\\\]|\\\\.)*)"')
  $$`,
  `CREATE FUNCTION $schema.set_place() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.place := $schema.place_of($schema.cwd_in(NEW.fixed), NEW.labels);
      NEW.place_tenant := $schema.place_tenant_of(NEW.tenant);
      RETURN NEW;
    END
  $$`,
  `UPDATE $schema.runs SET place = $schema.place_of($schema.cwd_in(fixed), labels),
    place_tenant = $schema.place_tenant_of(tenant)`,
  `CREATE TRIGGER runs_set_place BEFORE INSERT ON $schema.runs
    FOR EACH ROW EXECUTE FUNCTION $schema.set_place()`,
  `CREATE INDEX runs_by_place ON $schema.runs (place, place_tenant)`,
  `CREATE INDEX runs_holding ON $schema.runs (place) WHERE holds_folder`,
  // Volatile, so that it sees the rows that the statement has changed before. The orders, here and
  // below, make every plan use the indexes.
  `CREATE FUNCTION $schema.is_held(wanted text, run text) RETURNS boolean LANGUAGE sql AS $$
    SELECT (
      SELECT true FROM $schema.runs WHERE holds_folder AND run_id <> run
        AND place >= wanted COLLATE "C" AND place < (left(wanted, -1) || '0') COLLATE "C"
      ORDER BY place LIMIT 1
    ) IS NOT NULL OR EXISTS (
      SELECT 1 FROM generate_series(1, length(wanted) - 1) AS i, LATERAL (
        SELECT 1 FROM $schema.runs WHERE holds_folder AND place = left(wanted, i) COLLATE "C"
        ORDER BY place LIMIT 1
      ) AS holder
      WHERE substr(wanted, i, 1) = '/'
    )
  $$`,
  // Processes of an earlier version know equal folders only: their claims are skipped here.
  `CREATE FUNCTION $schema.guard_place() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF $schema.is_held(NEW.place, NEW.run_id) THEN RETURN NULL; END IF;
      RETURN NEW;
    END
  $$`,
  `CREATE TRIGGER runs_guard_place BEFORE UPDATE ON $schema.runs
    FOR EACH ROW WHEN (NEW.holds_folder AND NOT OLD.holds_folder)
    EXECUTE FUNCTION $schema.guard_place()`,
]

/** A path as a place contains it. */
function pathOf(cwd: string): string {
  return JSON.stringify(cwd).slice(1, -1)
}

/**
 * Selects a row when a run of another tenant has its place here, above or below. What is above is
 * looked up; of what is below, the distinct folders are, so the number of runs does not count.
 */
export function foreignQuery(
  schema: string,
  { details, owner }: Pick<RunHead, 'details' | 'owner'>,
  labels: readonly string[],
): PgQuery {
  const text = `WITH RECURSIVE wanted AS MATERIALIZED (
      SELECT ${schema}.place_of($1, $2) COLLATE "C" AS place,
        ${schema}.place_tenant_of($3) COLLATE "C" AS tenant
    ), below AS (
      (SELECT r.place, r.place_tenant FROM wanted w, LATERAL (
        SELECT place, place_tenant FROM ${schema}.runs
        WHERE place >= w.place AND place < left(w.place, -1) || '0'
        ORDER BY place, place_tenant LIMIT 1) r)
      UNION ALL
      SELECT r.place, r.place_tenant FROM below b, wanted w, LATERAL (
        SELECT place, place_tenant FROM ${schema}.runs
        WHERE (place, place_tenant) > (b.place, b.place_tenant)
          AND place < left(w.place, -1) || '0'
        ORDER BY place, place_tenant LIMIT 1) r
      WHERE b.place_tenant = w.tenant
    ), above AS (
      SELECT left(w.place, i) COLLATE "C" AS place, w.tenant
      FROM wanted w, generate_series(1, length(w.place) - 1) AS i
      WHERE substr(w.place, i, 1) = '/'
    )
    SELECT 1 FROM below b, wanted w WHERE b.place_tenant <> w.tenant
    UNION ALL
    SELECT 1 FROM above a WHERE (
      SELECT true FROM ${schema}.runs r WHERE r.place = a.place AND r.place_tenant < a.tenant
      ORDER BY r.place_tenant LIMIT 1
    ) OR (
      SELECT true FROM ${schema}.runs r WHERE r.place = a.place AND r.place_tenant > a.tenant
      ORDER BY r.place_tenant LIMIT 1
    )
    LIMIT 1`
  const tenant = owner.tenant === null ? null : keyText(owner.tenant)
  return { name: 'runwright_foreign', text, values: [pathOf(details.cwd), [...labels], tenant] }
}

/** Selects another run that has not ended and wants this place, one above or one below. */
export function busyQuery(
  schema: string,
  { details }: RunHead,
  labels: readonly string[],
): PgQuery {
  const text = `SELECT run_id FROM ${schema}.runs, (
      SELECT ${schema}.place_of($1, $2) COLLATE "C" AS place
    ) AS wanted
    WHERE folder IS NOT NULL AND ended_ms IS NULL AND run_id <> $3
      AND (starts_with(runs.place, wanted.place) OR starts_with(wanted.place, runs.place)) LIMIT 1`
  const values = [pathOf(details.cwd), [...labels], details.run_id]
  return { name: 'runwright_busy', text, values }
}

/** Condition: the run, which has not ended, shares its folder with others (policy `allow`). */
export const SHARES = '(shares_folder IS TRUE)'

/**
 * Selects, as `holder`, a run other than this one that has its folder, one above or one below, or
 * that works or waits at a gate in one of them and shares it.
 */
export function holderQuery(schema: string, runId: string): PgQuery {
  const text = `SELECT r.run_id AS holder, NULL AS fence
    FROM ${schema}.runs r, (SELECT place FROM ${schema}.runs WHERE run_id = $1) AS wanted
    WHERE (r.holds_folder OR (r.ended_ms IS NULL AND ${SHARES}
        AND (status IN ('running', 'awaiting_human') OR claimed_by IS NOT NULL)))
      AND r.run_id <> $1
      AND (starts_with(r.place, wanted.place) OR starts_with(wanted.place, r.place)) LIMIT 1`
  return { name: 'runwright_holder', text, values: [runId] }
}
