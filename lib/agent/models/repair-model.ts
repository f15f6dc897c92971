import type { GoalSpec } from '../goal.js'
import type { Model, ModelRequest, ModelTurn } from '../model.js'

/**
 * Makes the model `builtin:repair`: a deterministic program-repair engine, not a language model.
 *
 * Each turn asks for tool calls: they list and read files, run the tests, and try small patches in
 * copies of the workspace (`try_patches`). Only a patch with which strictly more tests of the whole
 * check pass, and none fail, is made in the workspace itself. No file that belongs to the check is
 * changed. A turn without calls means that all tests pass, or, with `stop: 'refusal'` and a text
 * that begins with `No candidate left`, that nothing is left to try.
 *
 * The same messages give the same turn, in any process. It uses no tokens.
 */
export function repairModel(): Model {
  return new RepairModel()
}

/** Loads the engine with the first request: it is large, and most processes never use it. */
class RepairModel implements Model {
  readonly name = 'builtin:repair'
  readonly isLanguageModel = false
  readonly contextWindow = null
  readonly readsWholeOutputs = true
  readonly prices = { input: 0, output: 0, cached: 0, as_of: '2026-01-01' }
  #engine: { complete(request: ModelRequest): ModelTurn } | undefined

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const { RepairEngine } = await import('./repair/index.js')
    this.#engine ??= new RepairEngine()
    return this.#engine.complete(request)
  }
}

/** True if `builtin:repair` is all that a run has. */
export function isRepairOnly(models: readonly Model[]): boolean {
  return models.every((model) => model instanceof RepairModel)
}

/**
 * Why `builtin:repair` cannot reach a goal; null if it may. Of free text with a check it depends on
 * whether the check runs tests.
 */
export function refusedGoal(
  { by_result, judge, name, reporter }: GoalSpec,
  givesResult: boolean,
): string | null {
  if (by_result === true || givesResult) {
    return 'must be a language model for a request with a result: builtin:repair gives none'
  }
  if (judge === undefined && (name !== 'text' || reporter !== null)) return null
  return (
    'must be a language model for a goal in free text: builtin:repair only repairs what failing ' +
    'tests show. A goal that runs tests needs none, such as npm-test or shell: npm test'
  )
}
