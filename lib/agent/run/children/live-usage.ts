/**
 * Pure: what the live runs of a tree have used that the logs of the runs above them do not tell
 * yet. A log tells what a child has used, with all below that, when the child has ended.
 *
 * @module
 */
import type { RunHead } from '../../run-details.js'
import { spentBudget, type Unlogged } from '../budgets.js'

/** Live runs below this one, but for those that it has started itself. */
export function grandchildrenOf(runId: string, live: readonly RunHead[]): readonly RunHead[] {
  const all = parents(live)
  return live.filter(({ details }) => {
    const above = aboveOf(details.run_id, all)
    return above.includes(runId) && above[0] !== runId
  })
}

/** Has a run above this one, together with all below it, used up a budget? */
export function isSpentAbove(runId: string, live: readonly RunHead[]): boolean {
  const all = parents(live)
  const above = new Set(aboveOf(runId, all))
  return live.some(({ details }) => {
    if (!above.has(details.run_id)) return false
    const below = live.filter((one) => aboveOf(one.details.run_id, all).includes(details.run_id))
    return spentBudget(details, sumOfUsage(below)) !== null
  })
}

type Parents = ReadonlyMap<string, string | null>

/** The parents of children; a retry has one as well, but is a root. */
function parents(live: readonly RunHead[]): Parents {
  return new Map(live.map(({ details: { parent_run_id, role, run_id } }) => [
    run_id, role === 'root' ? null : parent_run_id,
  ]))
}

/** The ids of the runs above, the nearest first. No tree has more than five levels. */
function aboveOf(runId: string, all: Parents): readonly string[] {
  const above: string[] = []
  let next = all.get(runId) ?? null
  while (next !== null && above.length < 8) {
    above.push(next)
    next = all.get(next) ?? null
  }
  return above
}

/** What these runs have used, as far as their own logs tell. */
export function sumOfUsage(heads: readonly RunHead[]): Unlogged {
  let [tokens, costUsd, calls] = [0, 0, 0]
  for (const { details: { final_state, usage } } of heads) {
    tokens += final_state.total_tokens
    costUsd += final_state.estimated_cost_usd
    calls += usage.tool_calls
  }
  return { tokens, costUsd, calls }
}
