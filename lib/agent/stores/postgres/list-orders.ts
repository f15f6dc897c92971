/**
 * Lists in the order of folders, end reasons and parents: a column that the database fills in
 * itself, as the list keys of `schema.ts`, and an index for each order.
 *
 * @module
 */
import type { OrderField } from '../../../internal/run-sorts.js'

/** The expressions by which runs are ordered; the indexes below are of the same. */
const EXPRESSIONS: Readonly<Record<OrderField, string>> = {
  cwd: `coalesce(cwd_order, '')`,
  end_reason: `(coalesce(end_reason, '') COLLATE "C")`,
  parent: `coalesce(parent_run_id, '')`,
}

/** The migration for it. `$schema` is replaced by the quoted name of the schema. */
export const LIST_ORDER_STATEMENTS: readonly string[] = [
  `ALTER TABLE $schema.runs ADD COLUMN cwd_order text COLLATE "C"`,
  // As `folderOrder()` of `stores/list-query.ts`.
  `CREATE FUNCTION $schema.folder_order(cwd text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT left(cwd, 400) || chr(1) || $schema.list_key('"' || cwd || '"')
  $$`,
  `CREATE OR REPLACE FUNCTION $schema.set_list_keys() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.cwd_key := $schema.list_key('"' || $schema.cwd_in(NEW.fixed) || '"');
      NEW.cwd_order := $schema.folder_order($schema.cwd_in(NEW.fixed));
      NEW.metadata_keys := $schema.metadata_keys_in(NEW.fixed);
      RETURN NEW;
    END
  $$`,
  `UPDATE $schema.runs SET cwd_order = $schema.folder_order($schema.cwd_in(fixed))`,
  ...Object.entries(EXPRESSIONS).map(
    ([field, expression]) =>
      `CREATE INDEX runs_ordered_by_${field} ON $schema.runs (${expression}, created_ms, run_id)`,
  ),
]

/** The expressions by which rows are ordered, for `ORDER BY` and the condition of a cursor. */
export function orderColumns(field: OrderField | null): readonly string[] {
  return [...(field === null ? [] : [EXPRESSIONS[field]]), 'created_ms', 'run_id']
}
