import { hash } from '../../internal/hash.js'
import { canonicalJson } from '../../internal/json.js'
import type { CallEdit } from '../events.js'

/** What tells the edits of two answers to a gate apart; undefined for an answer without edits. */
export function editsHash(
  edits: { readonly [callId: string]: CallEdit } | undefined,
): string | undefined {
  if (edits === undefined || Object.keys(edits).length === 0) return undefined
  return hash('sha256', canonicalJson(edits))
}
