import { checkOptions, describeValue, type OptionKinds } from '../../internal/options.js'
import { type Clock, sleep, systemClock } from '../../internal/time.js'
import type { Model, ModelRequest, ModelTurn } from '../model.js'
import { checkPrices, type ModelPrices } from '../usage.js'
import {
  buildScriptedTurn,
  scriptedError,
  checkScriptedTurn,
  checkTurnOptions,
  turnIndex,
  type ScriptedTurn,
} from '../models/scripted/script.js'

/** A scripted turn, or a function that returns one for the request, or throws. */
export type ScriptedStep =
  ScriptedTurn | ((request: ModelRequest) => ScriptedTurn | Promise<ScriptedTurn>)

/** Options of {@link ScriptedModel}. */
export interface ScriptedModelOptions {
  /** @defaultValue 'scripted:test' */
  readonly name?: string | undefined
  /** @defaultValue false */
  readonly isLanguageModel?: boolean | undefined
  /** @defaultValue null */
  readonly contextWindow?: number | null | undefined
  /** @defaultValue zero */
  readonly prices?: ModelPrices | null | undefined
  /**
   * Answers each request for a summary, which takes no turn of the script; without it, the model is
   * not asked for any.
   */
  readonly summary?: ScriptedStep | undefined
  /** The clock that measures `delay_ms`. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
}

const OPTIONS: OptionKinds<ScriptedModelOptions> = {
  name: 'string', isLanguageModel: 'boolean', contextWindow: 'number|null',
  prices: 'object|null', summary: 'any', clock: 'object',
}
const MAX_REQUESTS = 1_000

/**
 * A model for tests: returns scripted turns, records requests, and verifies that every turn was
 * requested. The number of assistant turns in a conversation selects the next scripted turn.
 *
 * @example
 * ```ts
 * const model = new ScriptedModel([
 *   { calls: [{ tool: 'read_file', args: { path: 'sum.js' } }] },
 *   { text: 'Done.', expect: { last_tool_result_contains: 'return' } },
 * ])
 * // … run an agent with it …
 * model.assertUsedUp()
 * ```
 */
export class ScriptedModel implements Model {
  readonly name: string
  readonly isLanguageModel: boolean
  readonly contextWindow: number | null
  readonly prices: ModelPrices | null
  /** The last 1000 requests, oldest first; `messages` and `tools` are copies. */
  readonly requests: ModelRequest[] = []
  readonly #steps: readonly ScriptedStep[]
  readonly #summary: ScriptedStep | undefined
  readonly #clock: Clock
  readonly #used = new Set<number>()
  readonly #failures = new Map<number, number>()

  constructor(steps: readonly ScriptedStep[], options: ScriptedModelOptions = {}) {
    checkOptions(options, OPTIONS, 'new ScriptedModel()')
    checkPrices(options.prices)
    if (!Array.isArray(steps)) {
      throw new TypeError(`a ScriptedModel needs an array of turns, got ${describeValue(steps)}`)
    }
    for (const [index, step] of steps.entries()) {
      if (typeof step !== 'function') checkTurnOptions(step, `turns[${index}]`)
    }
    const { summary } = options
    if (summary !== undefined && typeof summary !== 'function') checkTurnOptions(summary, 'summary')
    this.#summary = summary
    this.name = options.name ?? 'scripted:test'
    this.isLanguageModel = options.isLanguageModel ?? false
    this.contextWindow = options.contextWindow ?? null
    this.prices =
      options.prices === undefined ? { input: 0, output: 0, as_of: '2026-01-01' } : options.prices
    this.#steps = [...steps]
    this.#clock = options.clock ?? systemClock
  }

  get summarizes(): boolean {
    return this.#summary !== undefined
  }

  /** Null: it takes all settings, and its script may look at them. */
  refusedSetting(): null {
    return null
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    this.requests.push({ ...request, messages: [...request.messages], tools: [...request.tools] })
    if (this.requests.length > MAX_REQUESTS) this.requests.shift()
    const isSummary = request.purpose === 'summary'
    const index = isSummary ? -1 : turnIndex(request)
    this.#used.add(index)
    const turn = await this.#turn(index, request)
    if (turn.delay_ms !== undefined) await sleep(turn.delay_ms, request.signal, this.#clock)
    if (turn.error !== undefined) {
      const failures = (this.#failures.get(index) ?? 0) + 1
      this.#failures.set(index, failures)
      if (failures <= (turn.error.times ?? Infinity)) throw scriptedError(turn.error, this.name)
    }
    if (turn.text !== undefined && turn.text !== '') request.onDelta?.(turn.text)
    return buildScriptedTurn(turn, Math.max(0, index))
  }

  /** @throws Error that names the turns no request has reached. */
  assertUsedUp(): void {
    const numbers = this.#steps.map((_, index) => index + 1)
    const unused = numbers.filter((number) => !this.#used.has(number - 1))
    if (unused.length === 0) return
    const problem = `of ${this.#steps.length} turns, never requested: ${unused.join(', ')}`
    throw new Error(`${this.name}: ${problem}`)
  }

  async #turn(index: number, request: ModelRequest): Promise<ScriptedTurn> {
    const step = index < 0 ? this.#summary : this.#steps[index]
    const made = typeof step === 'function' ? await step(request) : step
    const place = index < 0 ? 'summary' : `turns[${index}]`
    if (typeof step === 'function') checkTurnOptions(made!, place)
    return checkScriptedTurn(made, index, this.#steps.length, request, this.name)
  }
}
