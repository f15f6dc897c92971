import type { Tree, TreeEntry } from '../tree.js'
import { isSameEntry, PER_STEP, unseenIn } from '../workspace/net-changes.js'

/**
 * The base of an apply of a fork that took over changes of its source: where these began. But what
 * the folder has as the fork found it, because the source was applied meanwhile, is no change.
 *
 * @param began the tree with which the changes of the source began
 * @param start the tree with which the fork began
 * @param theirs the folder now
 */
export function* baseOfTakenOver(began: Tree, start: Tree, theirs: Tree): Generator<void, Tree> {
  const entries = new Map<string, TreeEntry>(began.entries)
  const isUnseen = unseenIn(start, 'all')
  let looked = 0
  for (const [path, entry] of start.entries) {
    if (++looked % PER_STEP === 0) yield
    if (isSameEntry(theirs.entries.get(path) ?? null, entry)) entries.set(path, entry)
  }
  for (const path of began.entries.keys()) {
    if (++looked % PER_STEP === 0) yield
    const isGone = !theirs.entries.has(path) && !start.entries.has(path) && !isUnseen(path)
    if (isGone) entries.delete(path)
  }
  return { ...began, entries }
}
