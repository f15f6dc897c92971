/**
 * The start with which the checks of a run compare its folder, if an earlier run has left changes
 * there that nothing has accepted.
 *
 * 1. Every path that still has the content with which the earlier run left it is as at the start of
 *    that run's checks; every other path is as it is now. So what a person has edited since is part
 *    of the new start, and a chain of runs has the start of its first one.
 * 2. A verdict accepts what it covers: of a run that was achieved, only the files that its verdict
 *    holds back count.
 * 3. Only checks use it. Changes, restores and forks of the run go by its own first checkpoint.
 *
 * @module
 */
import { LongWork } from '../../internal/time.js'
import type { RunHead } from '../run-details.js'
import type { RunState } from '../log/run-state.js'
import type { ObjectStore } from '../object-store.js'
import type { RunStore } from '../store.js'
import type { TreeEntry } from '../tree.js'
import { outsideTree } from '../workspace/left-out.js'
import { readDifference } from '../workspace/load-tree-diff.js'
import { readTree } from '../workspace/read-tree.js'
import { checkpointRecords, isOfOriginal } from './checkpoint-chain.js'
import { checkedFilesOf, deliveredTree } from './delivered.js'
import { useTree } from './fork-files.js'
import { storeTree } from './store-tree.js'

/** A run that has left changes in a folder. */
export interface EarlierRun {
  readonly runId: string
  /** The tree with which its checks compared the folder. */
  readonly start: string
  /** The tree that it left. */
  readonly last: string
  /** True for the path of a change that its verdict accepts. */
  readonly isAccepted: (path: string) => boolean
}

/** Ended runs of a folder that are looked at: first the last one, and further ones if need be. */
const LOOKED_AT = [1, 20]

/**
 * The last run that worked in the folder in which this one begins; null if it has left nothing that
 * matters to checks.
 *
 * @throws what the store throws.
 */
export async function findEarlier(
  store: Pick<RunStore, 'list' | 'read'>,
  { frozen, head }: RunState,
): Promise<EarlierRun | null> {
  const { cwd } = frozen.request
  const { tenant } = head.owner
  const status = ['achieved', 'failed', 'aborted'] as const
  let cursor: string | undefined
  for (const limit of LOOKED_AT) {
    const { heads, next } = await store.list({ cwd, tenant, status, limit, cursor })
    const found = heads.find(mayHaveChanged)
    if (found !== undefined) return await leftBy(store, found, frozen.fork?.checkpoint_id ?? null)
    if (next === null) return null
    cursor = next
  }
  return null
}

/** The changes of an isolated run are in its copy, until a person applies them. */
function mayHaveChanged({ details, problem }: RunHead): boolean {
  return problem === undefined && details.workspace === 'in_place' && details.checkpoint_id !== null
}

/** @param forkedAt the tree with which a fork begins; null for other runs */
async function leftBy(
  store: Pick<RunStore, 'read'>,
  head: RunHead,
  forkedAt: string | null,
): Promise<EarlierRun | null> {
  const newest = head.details.checkpoint_id!
  let start: string | undefined
  let isPoint = false
  for await (const { payload, private: hidden } of checkpointRecords(store, head)) {
    if (isOfOriginal(payload)) continue
    isPoint ||= payload.checkpoint_id === forkedAt
    start = hidden?.check_start ?? payload.checkpoint_id
  }
  // A fork begins with what its source had left at that point.
  const last = isPoint ? forkedAt! : newest
  if (start === undefined || start === last) return null
  const { run_id: runId, status } = head.details
  if (status !== 'achieved' || last !== newest)
    return { runId, start, last, isAccepted: () => false }
  const held = (await checkedFilesOf(store, head))?.held_back ?? []
  const isHeld = new Set(held)
  return held.length === 0 ? null
    : { runId, start, last, isAccepted: (path) => !isHeld.has(path) }
}

/**
 * Stores the tree with which checks compare a folder that holds `now`, and returns its id; null if
 * that is `now` itself. Call it in `ObjectUse.capturing`.
 *
 * @throws as `readTree` and `useTree` do.
 */
export async function composeStart(
  objects: ObjectStore,
  { start, last, isAccepted }: EarlierRun,
  now: string,
): Promise<string | null> {
  const { before, after } = await readDifference(objects, start, last)
  const current = await readTree(objects, now)
  const sides = [before, after, current].map((tree) => {
    const isOutside = outsideTree(tree)
    return (path: string) => {
      const entry = tree.entries.get(path)
      return entry === undefined && isOutside(path) ? undefined : (entry ?? null)
    }
  })
  const work = new LongWork()
  const kept: string[] = []
  for (const path of new Set([...before.entries.keys(), ...after.entries.keys()])) {
    if (work.isDue) await work.next()
    const [was, left, is] = sides.map((side) => side(path))
    const isKnown = was !== undefined && left !== undefined && is !== undefined
    if (isKnown && isSame(left, is) && !isAccepted(path)) kept.push(path)
  }
  if (kept.length === 0) return null
  const id = await storeTree(objects, deliveredTree(before, current, kept))
  if (id === now) return null
  // The earlier run may be deleted at any time.
  await useTree(objects, id)
  return id
}

function isSame(one: TreeEntry | null, other: TreeEntry | null): boolean {
  return one?.kind === other?.kind && one?.sha256 === other?.sha256
}
