/**
 * The tree of a run, put together from the list of its runs and the details of each.
 *
 * 1. A run that is gone by the time its details are read, or that cannot be used, is left out with
 *    all runs below it; without the root there is no tree.
 * 2. Whatever a service lists, at most 16 children of a run are read, and as many runs as three
 *    full levels have.
 *
 * @module
 */
import type { RunDetails, RunSummary } from '../../agent/index.js'
import { isUnusableRun, RunServiceError } from '../errors.js'

/** A run with those that it started, and those that they started. */
export interface RunTree {
  readonly details: RunDetails
  /** Attempts in their order, then delegates in the order of their start; at most 16. */
  readonly children: readonly RunTree[]
}

/** The calls that reading a tree takes. */
export interface TreeCalls {
  get(runId: string): Promise<RunDetails>
  /** The runs of a tree, newest first, with or without its root. */
  list(rootId: string): AsyncIterable<RunSummary>
}

const MOST_CHILDREN = 16
const MOST_RUNS = MOST_CHILDREN + MOST_CHILDREN ** 2 + MOST_CHILDREN ** 3
/** Details that are read at a time. */
const AT_A_TIME = 8

/** A run whose children are still to be read. */
interface Growing {
  readonly details: RunDetails
  readonly children: Growing[]
}

/** Reads the tree to which a run belongs. */
export async function readTree(runId: string, calls: TreeCalls): Promise<RunTree> {
  const asked = await calls.get(runId)
  const { root_run_id: rootId } = asked
  const root = rootId === runId ? asked : await calls.get(rootId)
  const below = await childrenByParent(calls.list(rootId))
  const tree: Growing = { details: root, children: [] }
  for (let level = [tree]; level.length > 0;) {
    const found = level.flatMap((parent) => {
      const { run_id } = parent.details
      const ids = inOrder(parent.details, below.get(run_id) ?? [])
      // However its runs are listed, none is read twice.
      below.delete(run_id)
      return ids.map((id) => ({ parent, id }))
    })
    const read = await forEach(found, async ({ parent, id }) => {
      const details = await calls.get(id).catch(goneOrThrow)
      return details === null ? null : { parent, node: { details, children: [] } }
    })
    level = []
    for (const child of read) {
      if (child === null) continue
      child.parent.children.push(child.node)
      level.push(child.node)
    }
  }
  return tree
}

async function childrenByParent(
  runs: AsyncIterable<RunSummary>,
): Promise<Map<string, RunSummary[]>> {
  const below = new Map<string, RunSummary[]>()
  let count = 0
  for await (const run of runs) {
    // Whatever it lists; the root is one of them.
    if (++count > MOST_RUNS + 1) break
    // A retry has a parent as well, but is no child of it.
    if (run.role === 'root' || run.parent_run_id === null) continue
    const siblings = below.get(run.parent_run_id)
    if (siblings === undefined) below.set(run.parent_run_id, [run])
    else siblings.push(run)
  }
  return below
}

/** The ids of the children of a run, of which the list has the newest first. */
function inOrder({ attempts }: RunDetails, newestFirst: readonly RunSummary[]): string[] {
  const started = newestFirst.toReversed()
  const number = ({ run_id, role }: RunSummary): number => {
    const known = attempts?.runs.find((one) => one.run_id === run_id)?.attempt
    return known ?? (role === 'attempt' ? MOST_RUNS : MOST_RUNS + 1)
  }
  const ids = started.toSorted((a, b) => number(a) - number(b)).map(({ run_id }) => run_id)
  return [...new Set(ids)].slice(0, MOST_CHILDREN)
}

/** @returns null for a run that is not to be had. */
function goneOrThrow(error: unknown): null {
  if (!(error instanceof RunServiceError)) throw error
  if (error.code !== 'run_not_found' && !isUnusableRun(error.code)) throw error
  return null
}

/** The results in the order of the items. After an error no further item is begun. */
async function forEach<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const go = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = await work(items[index]!)
      } catch (error) {
        next = items.length
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, items.length) }, go))
  return results
}
