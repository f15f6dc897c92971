import { IdempotencyError } from '../errors.js'
import type { RunHead } from '../run-details.js'

/**
 * The run that a request repeats: `first` is the run that its idempotency key began, null for a new
 * key.
 *
 * @throws {@link IdempotencyError} when `first` was begun by another request.
 */
export function repeatedRun(first: RunHead | null, bodyHash: string | undefined): RunHead | null {
  if (first !== null && first.idempotency?.body_hash !== bodyHash) throw new IdempotencyError()
  return first
}
