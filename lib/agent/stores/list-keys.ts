import { hash } from '../../internal/bytes.js'


/**
 * The form in which runs are found by texts that may be long: a hash of the text as in JSON, which
 * PostgreSQL computes as well (`stores/postgres/schema.ts`).
 */
function keyOf(json: string): string {
  return hash('sha256', json, 'base64url').slice(0, 22)
}

/** The key of a folder. */
export function folderKey(cwd: string): string {
  return keyOf(JSON.stringify(cwd))
}

/** One object for the many runs without metadata. */
export const NO_KEYS: readonly string[] = []

/** The keys of names with their values. */
export function metadataKeys(metadata: Readonly<Record<string, string>>): readonly string[] {
  const entries = Object.entries(metadata)
  return entries.length === 0 ? NO_KEYS : entries.map((entry) => keyOf(JSON.stringify(entry)))
}
