import { createHash } from 'node:crypto'
import type { JsonObject } from '../../internal/json.js'
import type { ToolContext } from '../tool.js'

/** Files up to this size are hashed: as large as files are written. */
const MAX_HASHED_BYTES = 16 * 1024 * 1024

/** SHA-256 in hexadecimal. */
export function sha256(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex')
}

/** The hash of a file as it is now; null when there is none, or none that may be read. */
export async function hashOfFile(path: string, context: ToolContext): Promise<string | null> {
  try {
    return sha256(await context.workspace.readFile(path, { maxBytes: MAX_HASHED_BYTES }))
  } catch {
    return null
  }
}

/**
 * What is recorded before a file is changed. Without `after` nothing will be changed, since the
 * call is a mistake.
 */
export function planOf(before: string | null, after: string | null): JsonObject {
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
