/**
 * Columns by which runs are listed: folder, end reason and metadata. The database fills them in
 * itself, so runs of processes of an earlier version have them as well.
 *
 * @module
 */

/** The migration that adds them. `$schema` is replaced by the quoted name of the schema. */
export const LIST_KEY_STATEMENTS: readonly string[] = [
  `ALTER TABLE $schema.runs ADD COLUMN cwd_key text COLLATE "C", ADD COLUMN end_reason text,
    ADD COLUMN metadata_keys text[]`,
  // As `stores/list-keys.ts`.
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
