import { posix } from 'node:path'
import type { CheckedFiles } from '../../check-files.js'
import { comparePaths } from '../../workspace/net-changes.js'
import type { LeftOutReason } from './new-files.js'

/** Verified and added files of which it is kept that they are. */
const MAX_LISTED = 10_000

/** What a sealed check saw and did. */
interface Seen {
  /** Files that it read; null where the file system does not tell. */
  readonly read: Iterable<string> | null
  /** What its copy did not have at first; of a folder, the path of the folder. */
  readonly left: ReadonlyMap<string, LeftOutReason>
  /** What its copy had as at the start. */
  readonly restored: readonly string[]
}

/** Is that the reason for a file with new tests, or that helps them? */
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
  // What is held back must be known, however many files there are.
  if (verified.length + added.length > MAX_LISTED) return { verified: null, added: [], held_back }
  return { verified: read === null ? null : verified, added, held_back }
}

/** Why a file was left out: by itself, or with a folder. */
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
