/**
 * Trees of runs in the tables: where a run is in its tree, and when its root and its tenant last
 * had a turn.
 *
 * @module
 */

/** The migration for it. `$schema` is replaced by the quoted name of the schema. */
export const TREE_STATEMENTS: readonly string[] = [
  // Null for roots, so rows of processes of an earlier version are roots.
  `ALTER TABLE $schema.runs
    ADD COLUMN root_run_id text COLLATE "C", ADD COLUMN parent_run_id text COLLATE "C",
    ADD COLUMN role text, ADD COLUMN turn bigint`,
  `CREATE INDEX runs_by_root ON $schema.runs (root_run_id, turn) WHERE root_run_id IS NOT NULL`,
  `CREATE INDEX runs_by_parent ON $schema.runs (parent_run_id) WHERE parent_run_id IS NOT NULL`,
  // For claims: of trees, which take turns, and to be ended. Others are in runs_to_claim.
  `CREATE INDEX runs_of_trees_to_claim ON $schema.runs (queue_number)
    WHERE status = 'pending' AND root_run_id IS NOT NULL`,
  `CREATE INDEX runs_to_abort ON $schema.runs (queue_number) WHERE abort_wanted`,
  // With the rights of the owner: those who may write the tables need none for the sequence.
  `CREATE FUNCTION $schema.next_turn() RETURNS bigint LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog AS $$
    SELECT nextval(pg_get_serial_sequence('$schema.runs', 'queue_number'))
  $$`,
]

/** The migration for turns of tenants. */
export const TENANT_TURN_STATEMENTS: readonly string[] = [
  // Rows of processes of an earlier version have turns within trees only.
  `CREATE INDEX runs_by_turn ON $schema.runs (coalesce(tenant, ''), turn) WHERE turn IS NOT NULL`,
  `CREATE INDEX runs_of_tenants_to_claim ON $schema.runs (coalesce(tenant, ''), queue_number)
    WHERE status = 'pending' AND root_run_id IS NULL`,
]

/**
 * Expression: the turn of a run that is claimed now, null for one that only `ends`. A number of the
 * same sequence as the queue's, so its root and its tenant are behind all that wait now.
 */
export function turnWhenClaimed(schema: string): string {
  return `CASE WHEN NOT ends THEN ${schema}.next_turn() END`
}
