import { sleep } from '../../internal/sleep.js'
import { systemClock, type Clock } from '../../internal/clock.js'
import type { Model, ModelRequest, ModelTurn } from '../model.js'
import type { ModelPrices } from '../usage.js'
import {
  buildScriptedTurn,
  scriptedError,
  checkScriptedTurn,
  turnIndex,
  type ScriptedTurn,
} from '../models/scripted/script.js'

/** A scripted turn, or a function that makes one (or throws) from the request. */
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
  /** @defaultValue nothing costs anything */
  readonly prices?: ModelPrices | null | undefined
  /** By which `delay_ms` is waited. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
}

/** Requests that are kept. */
const MAX_REQUESTS = 1_000

/**
 * A model for tests: gives turns written in code, records what it was asked, and can tell whether
 * all of it was used. The place in the script is the number of turns that the conversation has.
 *
 * @example
 * ```ts
 * const model = new ScriptedModel([
 *   { calls: [{ tool: 'read_file', args: { path: 'sum.js' } }] },
 *   { text: 'Done.', expect: { last_tool_result_contains: 'return' } },
 * ])
 * // … run it …
 * model.assertUsedUp()
 * ```
 */
export class ScriptedModel implements Model {
  readonly name: string
  readonly isLanguageModel: boolean
  readonly contextWindow: number | null
  readonly prices: ModelPrices | null
  /** The last 1000 requests, oldest first, each as it was when it came. */
  readonly requests: ModelRequest[] = []
  readonly #steps: readonly ScriptedStep[]
  readonly #clock: Clock
  readonly #used = new Set<number>()
  readonly #failures = new Map<number, number>()

  constructor(steps: readonly ScriptedStep[], options: ScriptedModelOptions = {}) {
    this.name = options.name ?? 'scripted:test'
    this.isLanguageModel = options.isLanguageModel ?? false
    this.contextWindow = options.contextWindow ?? null
    this.prices =
      options.prices === undefined ? { input: 0, output: 0, as_of: '2026-01-01' } : options.prices
    this.#steps = [...steps]
    this.#clock = options.clock ?? systemClock
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    this.requests.push({ ...request, messages: [...request.messages], tools: [...request.tools] })
    if (this.requests.length > MAX_REQUESTS) this.requests.shift()
    const index = turnIndex(request)
    this.#used.add(index)
    const turn = await this.#turn(index, request)
    if (turn.delay_ms !== undefined) await sleep(turn.delay_ms, request.signal, this.#clock)
    if (turn.error !== undefined) {
      const failures = (this.#failures.get(index) ?? 0) + 1
      this.#failures.set(index, failures)
      if (failures <= (turn.error.times ?? Infinity)) throw scriptedError(turn.error, this.name)
    }
    if (turn.text !== undefined && turn.text !== '') request.onDelta?.(turn.text)
    return buildScriptedTurn(turn, index)
  }

  /** @throws Error naming the turns that nobody asked for. */
  assertUsedUp(): void {
    const unused = this.#steps
      .map((_, index) => index + 1)
      .filter((place) => !this.#used.has(place - 1))
    if (unused.length > 0) {
      throw new Error(
        `${this.name}: of ${this.#steps.length} turns, nobody asked for ${unused.join(', ')}`,
      )
    }
  }

  async #turn(index: number, request: ModelRequest): Promise<ScriptedTurn> {
    const step = this.#steps[index]
    const made = typeof step === 'function' ? await step(request) : step
    return checkScriptedTurn(made, index, this.#steps.length, request, this.name)
  }
}
