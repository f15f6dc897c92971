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
