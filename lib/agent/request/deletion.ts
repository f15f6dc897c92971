/**
 * Which runs go when one is deleted: its whole tree. The children come first, so that a crash in
 * between leaves none without a root: deleting the root again removes the rest.
 *
 * @module
 */
import { isTerminal } from '../events.js'
import { isCorrupt, RunStateError } from '../errors.js'
import { headsOf } from '../log/heads-of.js'
import { readLog } from '../log/read-log.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'

/** Records that are read at once. */
const PAGE = 1_000

/** A run that is to be removed. */
export interface DoomedRun {
  readonly runId: string
  /** False when its log is corrupt. */
  readonly isReadable: boolean
}

/**
 * The runs to remove, in this order. `head` is null for a run whose log is corrupt.
 *
 * @throws {@link RunStateError}: `child` for one of a tree whose root is there, `live` when a run
 * of the tree is; {@link StoreError}, when a run of the tree was continued by a newer version.
 */
export async function runsToDelete(
  store: RunStore,
  runId: string,
  head: RunHead | null,
): Promise<readonly DoomedRun[]> {
  if (head !== null) await assertDeletable(store, head.details)
  const tree: DoomedRun[] = []
  for await (const { details, problem } of headsOf(store, { root: runId })) {
    const { run_id, root_run_id, status } = details
    // Also if a store knows no trees: it would list all runs.
    if (run_id === runId || root_run_id !== runId) continue
    const isReadable = problem === undefined || (await canRead(store, run_id))
    if (isReadable && !isTerminal(status)) {
      throw new RunStateError('live', `run ${run_id} of its tree is ${status}; abort it first`)
    }
    tree.push({ runId: run_id, isReadable })
  }
  tree.push({ runId, isReadable: head !== null })
  return [...(await unlistedChildren(store, tree)), ...tree]
}

async function assertDeletable(store: RunStore, details: RunDetails): Promise<void> {
  const { run_id, root_run_id, status } = details
  if (root_run_id !== run_id && (await isStored(store, root_run_id))) {
    const text = `run ${run_id} goes with the tree that it is in; delete its root ${root_run_id}`
    throw new RunStateError('child', text)
  }
  if (isTerminal(status)) return
  throw new RunStateError('live', `run ${run_id} is ${status}; abort it first`)
}

/** Also true of a run that cannot be read. */
async function isStored(store: RunStore, runId: string): Promise<boolean> {
  return !(await canRead(store, runId)) || (await store.head(runId)) !== null
}

/** False for a corrupt log. */
async function canRead(store: RunStore, runId: string): Promise<boolean> {
  try {
    await store.head(runId)
    return true
  } catch (error) {
    if (isCorrupt(error)) return false
    throw error
  }
}

/** Corrupt runs of which not even the place in the tree is known: the logs of others name them. */
async function unlistedChildren(
  store: RunStore,
  tree: readonly DoomedRun[],
): Promise<readonly DoomedRun[]> {
  const damaged = new Set(store.damage?.().runs.map(({ runId }) => runId))
  for (const { runId } of tree) damaged.delete(runId)
  const found = new Set<string>()
  for (const { runId, isReadable } of damaged.size > 0 ? tree : []) {
    if (!isReadable) continue
    for await (const records of readLog(store, runId, PAGE)) {
      for (const { kind, payload } of records) {
        if (kind !== 'attempt_started' && kind !== 'delegate_started') continue
        if (damaged.has(payload.run_id)) found.add(payload.run_id)
      }
    }
  }
  return [...found].map((runId) => ({ runId, isReadable: false }))
}
