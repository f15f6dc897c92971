import { StoreError } from '../../errors.js'

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EACCES: 'access is denied; grant this user write access',
  EROFS: 'the file system is read-only; remount it for writing',
  EIO: 'the disk reports an error; check it',
}

/** Error for a failed write to a file of the journal: names the file and what to do. */
export function writeError(cause: unknown, { path }: { readonly path: string }): StoreError {
  if (cause instanceof StoreError) return cause
  const { code = '', message } = cause as NodeJS.ErrnoException
  return diskError(`cannot write to ${path}: ${REMEDIES[code] ?? message}`, cause)
}

/** Error for any other failed operation: `problem` and the message of the cause. */
export function operationError(problem: string, cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause
  return diskError(`${problem}: ${(cause as Error).message}`, cause)
}

/** What a disk refuses now it may accept later: whatever failed had no effect. */
function diskError(message: string, cause: unknown): StoreError {
  return new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message, { cause })
}

/** Is a file missing, as opposed to unreadable? */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
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
