import { systemCode } from '../../../internal/errors.js'
import { StoreError } from '../../errors.js'
import { remedyFor } from '../../machine-faults.js'

/** Codes of calls that make no sense: the disk is not at fault. */
const BUGS: ReadonlySet<string> = new Set(['EBADF', 'EFAULT', 'EINVAL', 'ENOSYS', 'ESPIPE'])

/** Error for a failed write to a file of the journal: names the file and what to do. */
export function writeError(cause: unknown, { path }: { readonly path: string }): StoreError {
  if (cause instanceof StoreError) return cause
  const remedy = remedyFor(systemCode(cause) ?? '')
  return diskError(`cannot write to ${path}: ${remedy ?? (cause as Error).message}`, cause)
}

/** Error for any other failed operation: `problem` and the message of the cause. */
export function operationError(problem: string, cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause
  return diskError(`${problem}: ${(cause as Error).message}`, cause)
}

/**
 * What a disk refuses now it may accept later: whatever failed had no effect. Waiting for a bug to
 * pass would hide it.
 */
function diskError(message: string, cause: unknown): StoreError {
  const isBug = cause instanceof TypeError || BUGS.has(systemCode(cause) ?? '')
  const code = isBug ? 'ERR_AGENT_STORE' : 'ERR_AGENT_STORE_UNAVAILABLE'
  return new StoreError(code, message, { cause })
}

/** Is a file missing, as opposed to unreadable? */
export function isMissing(error: unknown): boolean {
  return systemCode(error) === 'ENOENT'
}

/** Did it succeed? */
export function attempt(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
