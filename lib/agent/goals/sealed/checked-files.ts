import { posix } from 'node:path'
import type { CheckedFiles } from '../../check-files.js'
import { comparePaths } from '../../workspace/net-changes.js'
import type { LeftOutReason } from './new-files.js'

/** Most verified and added files whose groups are stored. */
const MAX_LISTED = 10_000

/** How a sealed check used the files of its copy. */
interface Seen {
  /** Files that it read; null where the file system does not record reads. */
  readonly read: Iterable<string> | null
  /** Files and whole folders that were removed from the copy, by path. */
  readonly left: ReadonlyMap<string, LeftOutReason>
  /** Files that were restored to their content at the start. */
  readonly restored: readonly string[]
}

/** True if a file was left out because it is a new test or helps new tests. */
export function isOfTests(reason: LeftOutReason | undefined): boolean {
  return reason === 'new test' || reason === 'helper of tests'
}

/** Groups the files that a run has changed. */
export function groupFiles(
  changed: readonly string[],
  { read, left, restored }: Seen,
): CheckedFiles {
  const [wasRead, wasRestored] = [new Set(read), new Set(restored)]
  const groups = { verified: [] as string[], added: [] as string[], held_back: [] as string[] }
  for (const path of [...changed].sort(comparePaths)) {
    const reason = reasonFor(path, left)
    if (wasRestored.has(path)) groups.held_back.push(path)
    else if (isOfTests(reason)) groups.added.push(path)
    else if (reason !== undefined) groups.held_back.push(path)
    else if (wasRead.has(path)) groups.verified.push(path)
  }
  const { verified, added, held_back } = groups
  // The list of held-back files must stay complete: an apply relies on it.
  if (verified.length + added.length > MAX_LISTED) return { verified: null, added: [], held_back }
  return { verified: read === null ? null : verified, added, held_back }
}

/** Why a file was left out, by its own path or with a folder above it. */
function reasonFor(
  path: string,
  left: ReadonlyMap<string, LeftOutReason>,
): LeftOutReason | undefined {
  for (let at = path; at !== '.'; at = posix.dirname(at)) {
    const reason = left.get(at)
    if (reason !== undefined) return reason
  }
  return undefined
}
