import type { CheckedFiles } from '../../check-files.js'
import { comparePaths } from '../../workspace/net-changes.js'
import { languageOf } from './file-kinds.js'
import { OWNERS } from './owners.js'
import type { OwnedFile } from './put-back.js'

/** Most verified and added files whose groups are stored. */
const MAX_LISTED = 10_000

/**
 * Groups the files that a run has changed by who owns them, and by what the sealed check has read:
 * null where the file system does not tell.
 */
export function groupFiles(
  files: readonly OwnedFile[],
  read: Iterable<string> | null,
): CheckedFiles {
  const wasRead = new Set(read)
  const isRead = (path: string): boolean => read === null || wasRead.has(path)
  const groups = {
    verified: [] as string[], added: [] as string[], held_back: [] as string[],
    changed_tests: [] as string[], allowed: [] as string[],
  }
  for (const file of [...files].sort((a, b) => comparePaths(a.path, b.path))) {
    const { path, rule, isNew, isRuns } = file
    if (isAllowed(file)) groups.allowed.push(path)
    if (rule === 'test' && !isNew && (isRuns || isAdded(file))) groups.changed_tests.push(path)
    if (isRuns) {
      if (isRead(path)) groups.verified.push(path)
    } else if (isAdded(file)) groups.added.push(path)
    // A new file that nothing names was not there to be read.
    else if (isNew ? rule !== 'rest' : isRead(path)) groups.held_back.push(path)
  }
  const { verified, added, held_back, changed_tests, allowed } = groups
  const told = {
    ...(changed_tests.length > 0 && { changed_tests }), ...(allowed.length > 0 && { allowed }),
  }
  // The list of held-back files must stay complete: an apply relies on it.
  if (verified.length + added.length > MAX_LISTED)
    return { verified: null, added: [], held_back, ...told }
  return { verified: read === null ? null : verified, added, held_back, ...told }
}

/** Is this a file of the check that counts as the run's, because its request says so? */
export function isAllowed({ rule, isRuns, canBeAllowed }: OwnedFile): boolean {
  return isRuns && canBeAllowed && OWNERS[rule][0] === 'check'
}

/** Tests and their helpers, without which the check passes as well. */
function isAdded({ path, rule, isNew, isGone }: OwnedFile): boolean {
  if (isGone || (rule !== 'test' && rule !== 'helper')) return false
  return isNew || languageOf(path) !== 'data'
}
