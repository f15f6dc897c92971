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
 * not know trees would work in place of its attempts, or outlive the run that started it; one that
 * does not know instructions would go on without them.
 */
export const TREE_FORMAT_LABEL = 'runwright: format 4'

/** Labels of this version's processes. */
export const FORMAT_LABELS: readonly string[] = [FORMAT_LABEL, TREE_FORMAT_LABEL]

/** What the table of processes has of this version's; those of earlier versions have 3. */
export const KNOWN_FORMAT = 4

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

/** The format that a process must know to drive a run with these records. */
export function formatOf(records: readonly RunRecord[]): number {
  return Math.max(...records.map(({ v }) => v))
}

/** The labels of a new run with records of this format. */
export function labelsFor(format: number): readonly string[] {
  return format > 3 ? FORMAT_LABELS : format > 1 ? [FORMAT_LABEL] : []
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
