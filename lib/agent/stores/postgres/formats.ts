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

/** Must a process know format 2 to drive a run with these records? */
export function needsFormat(records: readonly RunRecord[]): boolean {
  return records.some(({ v }) => v > 1)
}

/** Expression: the labels of the row `r`, with {@link FORMAT_LABEL}. */
export const LABELS_WITH_FORMAT: string =
  `array_append(array_remove(r.labels, '${FORMAT_LABEL}'), '${FORMAT_LABEL}')`
