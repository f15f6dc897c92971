import { hash } from '../../internal/hash.js'
import type { JsonObject } from '../../internal/json.js'
import { unreadable } from '../exhaustion.js'
import type { ToolContext } from '../tool.js'

/** The largest file that is hashed, which is the largest that a workspace writes. */
const MAX_HASHED_BYTES = 16 * 1024 * 1024

/** The hash of a file as it is now; null when it does not exist or cannot be read. */
export async function hashOfFile(path: string, context: ToolContext): Promise<string | null> {
  try {
    const options = { maxBytes: MAX_HASHED_BYTES }
    return hash('sha256', await context.workspace.readFile(path, options))
  } catch (error) {
    return unreadable(error)
  }
}

/**
 * What is recorded before a file is changed: its hash now, and the hash it will have. Without
 * `after` the call is a mistake and changes nothing.
 */
export function changePlan(before: string | null, after: string | null): JsonObject {
  return after === null ? { before } : { before, after }
}

/** Tells from the file's present hash whether the planned change was made. */
export async function verifyByHash(
  path: string,
  plan: JsonObject,
  context: ToolContext,
): Promise<'done' | 'undone' | 'unknown'> {
  if (plan['after'] === undefined) return 'undone'
  const now = await hashOfFile(path, context)
  if (now === plan['after']) return 'done'
  return now === plan['before'] ? 'undone' : 'unknown'
}
