import { sleep } from '../../../internal/sleep.js'
import { systemClock, type Clock } from '../../../internal/clock.js'
import type { Model, ModelPrices, ModelRequest, ModelTurn } from '../../model.js'
import {
  buildScriptedTurn,
  scriptedError,
  checkScriptedTurn,
  turnIndex,
  type ScriptedTurn,
} from './script.js'

/** How many failures with `times` are counted before the oldest count is forgotten. */
const MAX_COUNTS = 1_000

/** Plays a script: the model behind `scripted:<file>`. */
export class ScriptedPlayer implements Model {
  readonly name: string
  readonly isLanguageModel = false
  /** A conversation is never shortened: the number of its turns is the place in the script. */
  readonly contextWindow = null
  readonly prices: ModelPrices = { input: 0, output: 0, as_of: '2026-01-01' }
  readonly #script: readonly ScriptedTurn[]
  readonly #clock: Clock
  /** Failures given so far, by run and place. */
  readonly #failed = new Map<string, number>()

  constructor(name: string, script: readonly ScriptedTurn[], clock: Clock = systemClock) {
    this.name = name
    this.#script = [...script]
    this.#clock = clock
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const index = turnIndex(request)
    const found = this.#script[index]
    const turn = checkScriptedTurn(found, index, this.#script.length, request, this.name)
    if (turn.delay_ms !== undefined) await sleep(turn.delay_ms, request.signal, this.#clock)
    if (
      turn.error !== undefined &&
      this.#fails(turn.error.times, `${request.run.run_id}:${index}`)
    ) {
      throw scriptedError(turn.error, this.name)
    }
    if (request.onDelta !== undefined) {
      for (const word of (turn.text ?? '').match(/\S+\s*|\s+/g) ?? []) request.onDelta(word)
    }
    return buildScriptedTurn(turn, index)
  }

  #fails(times: number | undefined, place: string): boolean {
    if (times === undefined) return true
    const count = (this.#failed.get(place) ?? 0) + 1
    this.#failed.set(place, count)
    if (this.#failed.size > MAX_COUNTS) this.#failed.delete(this.#failed.keys().next().value!)
    return count <= times
  }
}
