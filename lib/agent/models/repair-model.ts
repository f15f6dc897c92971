import type { Model, ModelRequest, ModelTurn } from '../model.js'

/**
 * Makes the model `builtin:repair`: a deterministic program-repair engine, not a language model.
 *
 * Each turn asks for tool calls that run the check, read failing tests and sources, or try small
 * patches one by one. A patch that makes strictly more tests pass, and none fail, is kept; every
 * other one is reverted. No file that belongs to the check is changed. A turn without calls means
 * that all tests pass, or, with `stop: 'refusal'` and a text that begins with `No candidate left`,
 * that nothing is left to try.
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
  readonly prices = { input: 0, output: 0, cached: 0, as_of: '2026-01-01' }
  #engine: { complete(request: ModelRequest): ModelTurn } | undefined

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const { RepairEngine } = await import('./repair/index.js')
    this.#engine ??= new RepairEngine()
    return this.#engine.complete(request)
  }
}
