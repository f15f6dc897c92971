/**
 * Columns for what claims ask of a head: whether a run shares its folder, and whether its log says
 * that its files are being changed. No statement reads the text of a head: PostgreSQL's operators
 * on JSON fail on NUL and on halves of characters, and one such row would fail every claim.
 *
 * Appends write them. For rows of processes of an earlier version the database fills them in.
 *
 * @module
 */

/** The migration that adds them. `$schema` is replaced by the quoted name of the schema. */
export const CLAIM_COLUMN_STATEMENTS: readonly string[] = [
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
