/**
 * Keeps processes of an earlier version from runs that they would misread: one that does not know
 * isolated runs would work in the user's folder, and one that does not know messages would not hear
 * them. Such a run has a label that only processes with a newer version have. Processes without it
 * may still end the run, which needs no folder.
 *
 * @module
 */
import type { RunRecord } from '../../events.js'

/** The label of runs with records of format 2, and of the processes that read them. */
export const FORMAT_LABEL = 'runwright: format 2'

/**
 * The migration for it: the label says nothing about the machine, so it is no part of the place.
 * `$schema` is replaced by the quoted name of the schema.
 */
export const FORMAT_STATEMENTS: readonly string[] = [
  `CREATE OR REPLACE FUNCTION $schema.set_place() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.place := $schema.place_of(
        $schema.cwd_in(NEW.fixed), array_remove(NEW.labels, '${FORMAT_LABEL}'));
      NEW.place_tenant := $schema.place_tenant_of(NEW.tenant);
      RETURN NEW;
    END
  $$`,
]

/**
 * The label of runs with records of format 4, which also have {@link FORMAT_LABEL}: one that does
 * not know trees would work in place of its attempts, or outlive the run that started it.
 */
export const TREE_FORMAT_LABEL = 'runwright: format 4'

/**
 * The label of runs with records of format 5, which have the others as well: one that does not know
 * the tools and approvals of a request would offer every tool, and ask nobody.
 */
export const TOOLS_FORMAT_LABEL = 'runwright: format 5'

/** Labels of this version's processes. */
export const FORMAT_LABELS: readonly string[] = [
  FORMAT_LABEL, TREE_FORMAT_LABEL, TOOLS_FORMAT_LABEL,
]

/** What the table of processes has of this version's; those before format 4 have 3. */
export const KNOWN_FORMAT = 5

/**
 * The migration for format 4. What only has to be ended is claimed whatever its labels are, which
 * an earlier version cannot do for a run that it cannot read: its claims are skipped here.
 */
export const TREE_FORMAT_STATEMENTS: readonly string[] = [
  `CREATE OR REPLACE FUNCTION $schema.set_place() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.place := $schema.place_of($schema.cwd_in(NEW.fixed),
        array_remove(array_remove(NEW.labels, '${FORMAT_LABEL}'), '${TREE_FORMAT_LABEL}'));
      NEW.place_tenant := $schema.place_tenant_of(NEW.tenant);
      RETURN NEW;
    END
  $$`,
  `ALTER TABLE $schema.workers ADD COLUMN format integer NOT NULL DEFAULT 3`,
  `CREATE FUNCTION $schema.guard_format() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM $schema.workers
        WHERE worker_id = NEW.claimed_by AND format < 4) THEN RETURN NULL; END IF;
      RETURN NEW;
    END
  $$`,
  `CREATE TRIGGER runs_guard_format BEFORE UPDATE ON $schema.runs
    FOR EACH ROW WHEN (NEW.claimed_by IS DISTINCT FROM OLD.claimed_by
      AND NEW.labels @> ARRAY['${TREE_FORMAT_LABEL}'])
    EXECUTE FUNCTION $schema.guard_format()`,
]

/** The migration for format 5, as the one for format 4. */
export const TOOLS_FORMAT_STATEMENTS: readonly string[] = [
  `CREATE OR REPLACE FUNCTION $schema.set_place() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.place := $schema.place_of($schema.cwd_in(NEW.fixed),
        array_remove(array_remove(array_remove(NEW.labels,
          '${FORMAT_LABEL}'), '${TREE_FORMAT_LABEL}'), '${TOOLS_FORMAT_LABEL}'));
      NEW.place_tenant := $schema.place_tenant_of(NEW.tenant);
      RETURN NEW;
    END
  $$`,
  `CREATE FUNCTION $schema.guard_tools_format() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM $schema.workers
        WHERE worker_id = NEW.claimed_by AND format < 5) THEN RETURN NULL; END IF;
      RETURN NEW;
    END
  $$`,
  `CREATE TRIGGER runs_guard_tools_format BEFORE UPDATE ON $schema.runs
    FOR EACH ROW WHEN (NEW.claimed_by IS DISTINCT FROM OLD.claimed_by
      AND NEW.labels @> ARRAY['${TOOLS_FORMAT_LABEL}'])
    EXECUTE FUNCTION $schema.guard_tools_format()`,
]

/** The format that a process must know to drive a run with these records. */
export function formatOf(records: readonly RunRecord[]): number {
  return Math.max(...records.map(({ v }) => v))
}

/** The labels of a new run with records of this format. */
export function labelsFor(format: number): readonly string[] {
  const oldest = { [FORMAT_LABEL]: 2, [TREE_FORMAT_LABEL]: 4, [TOOLS_FORMAT_LABEL]: 5 }
  return Object.entries(oldest).flatMap(([label, since]) => (format >= since ? [label] : []))
}

/** Expression: the labels of the row `r`, with {@link FORMAT_LABEL}. */
export const LABELS_WITH_FORMAT: string = withLabel('r.labels', FORMAT_LABEL)

/** Expression: the labels of the row `r` after records of the format `m.format`. */
export const LABELS_AFTER: string = `CASE
  WHEN m.format > 3 THEN ${withLabel(LABELS_WITH_FORMAT, TREE_FORMAT_LABEL)}
  WHEN m.format > 1 THEN ${LABELS_WITH_FORMAT} ELSE r.labels END`

function withLabel(labels: string, label: string): string {
  return `array_append(array_remove(${labels}, '${label}'), '${label}')`
}
