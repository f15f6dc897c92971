/**
 * The budgets of a tree, as one of its runs asks for them before it uses more.
 *
 * Of the runs that this process drives, what is folded counts, and what is about to begin; so their
 * tool calls keep a budget to the call. Of the runs of other processes, what is durable counts.
 *
 * @module
 */
import { isTerminal } from '../../events.js'
import type { RunState } from '../../log/run-state.js'
import type { LogWriter } from '../../log/writer.js'
import type { RunHead } from '../../run-details.js'
import type { Exhausted } from '../budgets.js'
import type { SharedBudget } from './call-runs.js'
import type { ChildRuns } from './child-runs.js'
import { mayCall, spentAbove, type TreeRun, type TreeRuns } from './live-usage.js'

/** The runs of trees with a budget that this process drives, by the roots of their trees. */
export type LocalTrees = Map<string, Set<TreeBudget>>

/** How the live runs of a tree are read, those of other processes as well. */
type LiveRuns = Pick<ChildRuns, 'live'>

/** What one run knows of the budgets of its tree, while this process drives it. */
export class TreeBudget implements SharedBudget, TreeRun {
  readonly #log: () => LogWriter
  readonly #runs: LiveRuns
  readonly #trees: LocalTrees
  readonly #rootId: string
  #beginning = 0
  #spent: Exhausted | null = null
  /** Its head when it had ended here. */
  #last: RunHead | null = null

  constructor(log: () => LogWriter, runs: LiveRuns, trees: LocalTrees) {
    this.#log = log
    this.#runs = runs
    this.#trees = trees
    this.#rootId = log().state.head.details.root_run_id
  }

  /** Null for a run whose own budgets are all that counts. */
  static of(log: () => LogWriter, runs: LiveRuns, trees: LocalTrees): TreeBudget | null {
    const { frozen, head } = log().state
    const { attempts, delegation, max_cost_usd, max_tool_calls, max_total_tokens } = frozen.request
    const isBounded = [max_cost_usd, max_tool_calls, max_total_tokens].some((most) => most !== null)
    const isAlone =
      head.details.role === 'root' && attempts === undefined && delegation === undefined
    return isBounded && !isAlone ? new TreeBudget(log, runs, trees) : null
  }

  get head(): RunHead {
    return this.#last ?? this.#log().state.head
  }

  get beginning(): number {
    return this.#beginning
  }

  tellsOf(childId: string): boolean {
    // A run that has ended knows the end of each child.
    return this.#last !== null || this.#state.children.get(childId)?.end != null
  }

  /** A budget above the run that was used up when it last looked; that does not change any more. */
  get spent(): Exhausted | null {
    return this.#spent
  }

  /** Called when this process begins to drive the run. */
  enter(): void {
    const tree = this.#trees.get(this.#rootId) ?? new Set()
    this.#trees.set(this.#rootId, tree.add(this))
  }

  /** Called when that is over. What an ended run has used counts until its parent tells of it. */
  leave(): void {
    const tree = this.#trees.get(this.#rootId)
    if (tree === undefined) return
    const { parent_run_id, role, run_id, status } = this.head.details
    let hasParent = false
    for (const other of tree) {
      const { details } = other.head
      if (details.run_id === parent_run_id && role !== 'root') hasParent = true
      if (other.#last !== null && details.parent_run_id === run_id) tree.delete(other)
    }
    if (hasParent && isTerminal(status)) this.#last = this.head
    else tree.delete(this)
    if (tree.size === 0) this.#trees.delete(this.#rootId)
  }

  /**
   * Looks whether a budget above the run is used up.
   *
   * @throws {@link StoreError}
   */
  async look(): Promise<Exhausted | null> {
    if (this.#spent !== null || this.head.details.role === 'root') return this.#spent
    const tree = await this.#tree()
    this.#spent ??= spentAbove(this.head.details.run_id, tree())
    return this.#spent
  }

  /**
   * Counts a call of a tool that is about to begin; null when it must not. The function returned is
   * called when the call is in the log, or will not begin.
   *
   * @throws {@link StoreError}
   */
  async reserveCall(): Promise<(() => void) | null> {
    // A run has a bound when one above it has.
    if (this.head.details.max_tool_calls === null) return () => undefined
    const tree = await this.#tree()
    // From here on without a wait, so that no two calls get the same place.
    if (!mayCall(this.head.details.run_id, tree())) return null
    this.#beginning += 1
    let isOver = false
    return () => {
      if (!isOver) this.#beginning -= 1
      isOver = true
    }
  }

  get #state(): RunState {
    return this.#log().state
  }

  /** Reads what other processes drive; the function returned adds what this one does. */
  async #tree(): Promise<() => TreeRuns> {
    const live = await this.#log().whenAvailable(() => this.#runs.live(this.#rootId))
    return () => {
      const runs = new Map<string, TreeRun>()
      for (const head of live) runs.set(head.details.run_id, remote(head))
      for (const run of this.#trees.get(this.#rootId) ?? [])
        runs.set(run.head.details.run_id, run)
      return runs
    }
  }
}

/** Children that its log tells of have ended, and so are not among those that are read. */
function remote(head: RunHead): TreeRun {
  return { head, beginning: 0, tellsOf: () => false }
}
