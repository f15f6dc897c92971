/**
 * Pure: what the runs of a tree have used together. The log of a run tells what a child has used,
 * with all below that, once the child has ended; until then, the child's own log does.
 *
 * @module
 */
import type { RunHead } from '../../run-details.js'
import { spentBudget, type Exhausted, type Unlogged } from '../budgets.js'

/** A run of a tree, as far as it is known now. */
export interface TreeRun {
  readonly head: RunHead
  /** Calls of tools that are about to begin, and are not in its log. */
  readonly beginning: number
  /** Does its log tell what this child has used? */
  tellsOf(childId: string): boolean
}

/** The runs of a tree by their ids. */
export type TreeRuns = ReadonlyMap<string, TreeRun>

/** A budget of a run above this one that is used up; null while none is. */
export function spentAbove(runId: string, tree: TreeRuns): Exhausted | null {
  for (const above of aboveOf(runId, tree)) {
    const { details } = (tree.get(above) as TreeRun).head
    const spent = spentBudget(details, usedBelow(above, tree))
    if (spent === null) continue
    const reason = `the budget of run ${above} is used up: ${spent.reason} by it and those below it`
    return { endReason: spent.endReason, reason }
  }
  return null
}

/** May this run begin one more call of a tool, for itself and for all runs above it? */
export function mayCall(runId: string, tree: TreeRuns): boolean {
  return [runId, ...aboveOf(runId, tree)].every((one) => {
    const run = tree.get(one)
    const most = run?.head.details.max_tool_calls ?? null
    if (run === undefined || most === null) return true
    const { beginning, calls } = usedBelow(one, tree)
    return run.head.details.usage.tool_calls + run.beginning + calls + beginning < most
  })
}

/** The ids of the runs above, the nearest first. No tree has more than five levels. */
function aboveOf(runId: string, tree: TreeRuns): readonly string[] {
  const above: string[] = []
  let next = parentOf(runId, tree)
  while (next !== null && tree.has(next) && above.length < 8) {
    above.push(next)
    next = parentOf(next, tree)
  }
  return above
}

/** The run that has started this one; a retry has a parent as well, but is a root. */
function parentOf(runId: string, tree: TreeRuns): string | null {
  const details = tree.get(runId)?.head.details
  return details === undefined || details.role === 'root' ? null : details.parent_run_id
}

/** What the runs below this one have used that its own log does not tell. */
function usedBelow(runId: string, tree: TreeRuns): Unlogged & { readonly beginning: number } {
  let [tokens, costUsd, calls, beginning] = [0, 0, 0, 0]
  for (const [below, run] of tree) {
    if (!addsTo(runId, below, tree)) continue
    const { final_state, usage } = run.head.details
    tokens += final_state.total_tokens
    costUsd += final_state.estimated_cost_usd
    calls += usage.tool_calls
    beginning += run.beginning
  }
  return { tokens, costUsd, calls, beginning }
}

/** Is `below` a run below this one, and no log on the way tells of it? */
function addsTo(runId: string, below: string, tree: TreeRuns): boolean {
  let child = below
  for (const above of aboveOf(below, tree)) {
    if (tree.get(above)?.tellsOf(child) === true) return false
    if (above === runId) return true
    child = above
  }
  return false
}
