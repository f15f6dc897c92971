import {
  ModelError, type GoalSpec, type Model, type ModelProvider, type ModelRequest, type ModelTurn,
} from '../agent/index.js'
import { tryPatchesTool } from './trials/try-patches.js'

/**
 * Provides the model `builtin:repair`, a deterministic program-repair engine, and the tool
 * `try_patches`, with which it and other models try patches in private copies of the workspace.
 *
 * Each turn of the model asks for tool calls: they list and read files, run the tests, and try
 * small patches in copies of the workspace. Only a patch with which strictly more tests of the
 * whole check pass, and none fail, is made in the workspace itself. No file that belongs to the
 * check is changed. A turn without calls means that all tests pass, or, with `stop: 'refusal'` and
 * a text that begins with `No candidate left`, that nothing is left to try.
 *
 * The same messages give the same turn, in any process. It uses no tokens.
 *
 * @example
 * ```ts
 * const engine = await RunEngine.open({
 *   store: new MemoryStore(),
 *   roots: [folder],
 *   providers: [repairModel()],
 *   defaultModel: 'builtin:repair',
 * })
 * ```
 */
export function repairModel(): ModelProvider {
  return {
    id: 'builtin',
    description: 'Deterministic program repair; no language model, no key, no network',
    isLanguageModel: false,
    suggestions: ['repair'],
    tools: [tryPatchesTool],
    create(name) {
      if (name === 'repair') return new RepairModel()
      const message = `there is no model builtin:${name}; there is builtin:repair`
      throw new ModelError('ERR_AGENT_MODEL', message, { retryable: false })
    },
  }
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
    const { RepairEngine } = await import('./engine.js')
    this.#engine ??= new RepairEngine()
    return this.#engine.complete(request)
  }

  /** Of free text with a check it depends on whether the check runs tests. */
  refusedGoal(
    goal: GoalSpec | null,
    { givesResult }: { readonly givesResult: boolean },
  ): string | null {
    if (goal?.by_result === true || givesResult) {
      return 'must be a language model for a request with a result: builtin:repair gives none'
    }
    const runsTests = goal !== null && (goal.name !== 'text' || goal.reporter !== null)
    if (runsTests && goal.judge === undefined) return null
    return (
      'must be a language model for a goal in free text: builtin:repair only repairs what ' +
      'failing tests show. A goal that runs tests needs none, such as npm-test or shell: npm test'
    )
  }
}
