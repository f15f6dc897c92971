/**
 * What code under test did to the runner, in the memory that it shares with its tests: hooks that
 * it registered, tests that it changed, functions that it replaced.
 *
 * Files of the check may do that, and so may any file that is as it was at the start, or that did
 * the same at the first check. New tests and their helpers are not in a copy where this is asked.
 *
 * @module
 */
import type { Deed, FilesAtStart, SealStart } from '../../check-files.js'
import type { GoalBaseline, GoalVerdict } from '../../goal.js'
import { listChanges } from '../compare-tests.js'
import { hashFiles } from '../protected-files.js'
import { isInTestTree, isTestName } from './file-kinds.js'

/** Why what was done in the check of a copy makes it worthless; null for nothing. */
export async function deedsAgainst(
  { deeds }: GoalVerdict,
  root: string,
  { deeds: before = [] }: SealStart,
  { files }: GoalBaseline,
  atStart: FilesAtStart,
): Promise<string | null> {
  const known = new Set(before.map(keyOf))
  const found: string[] = []
  for (const deed of deeds) {
    const { file, what } = deed
    if (known.has(keyOf(deed))) continue
    const isOfCheck = file !== null && (
      Object.hasOwn(files, file) || isTestName(file) || isInTestTree(file)
    )
    if (isOfCheck || (file !== null && !(await isChanged(file, root, atStart)))) continue
    found.push(`${file ?? 'something'} changes what runs the tests: ${what}`)
  }
  return found.length === 0 ? null : `tests changed: ${listChanges(found)}`
}

const keyOf = ({ file, what }: Deed): string => JSON.stringify([file, what])

async function isChanged(path: string, root: string, atStart: FilesAtStart): Promise<boolean> {
  const before = await atStart.hashOf(path)
  return before == null || (await hashFiles(root, [path]))[path] !== before
}
