import { type Clock, sleep, systemClock } from '../../../internal/time.js'
import type { ModelProvider } from '../../model-provider.js'
import type { Model, ModelRequest, ModelTurn } from '../../model.js'
import type { ModelPrices } from '../../usage.js'
import { readScriptFile } from './script-file.js'
import {
  buildScriptedTurn, checkScriptedTurn, scriptedError, type ScriptedTurn, turnIndex,
} from './script.js'

/**
 * Creates the provider of `scripted:<file>`: turns from a JSON file in `folder`. The host has to
 * choose the folder, since a request could otherwise name any file. The file is read when a run
 * resolves its model.
 */
export function scriptedProvider(folder: string): ModelProvider {
  return {
    id: 'scripted',
    description: 'Turns from a script file; no language model, no network',
    isLanguageModel: false,
    suggestions: [],
    create: (file) => {
      const { turns, summary } = readScriptFile(folder, file)
      return new ScriptedPlayer(`scripted:${file}`, turns, undefined, summary)
    },
  }
}

/** Counts kept of failures with `times`; beyond that, the oldest is forgotten. */
const MAX_COUNTS = 1_000

/** The model `scripted:<file>`: answers each request with the next turn of a script. */
export class ScriptedPlayer implements Model {
  readonly name: string
  readonly isLanguageModel = false
  /** Null, so that no conversation is shortened: the number of turns selects the answer. */
  readonly contextWindow = null
  readonly prices: ModelPrices = { input: 0, output: 0, as_of: '2026-01-01' }
  readonly #script: readonly ScriptedTurn[]
  readonly #summary: ScriptedTurn | undefined
  readonly #clock: Clock
  /** Failures so far, by run and index of the turn. */
  readonly #failed = new Map<string, number>()

  constructor(
    name: string,
    script: readonly ScriptedTurn[],
    clock: Clock = systemClock,
    summary?: ScriptedTurn,
  ) {
    this.name = name
    this.#script = [...script]
    this.#summary = summary
    this.#clock = clock
  }

  /** A request for a summary takes no turn of the script. */
  get summarizes(): boolean {
    return this.#summary !== undefined
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const index = turnIndex(request)
    const isSummary = request.purpose === 'summary'
    const found = isSummary ? this.#summary : this.#script[index]
    const turn = checkScriptedTurn(found, index, this.#script.length, request, this.name)
    if (turn.delay_ms !== undefined) await sleep(turn.delay_ms, request.signal, this.#clock)
    if (
      turn.error !== undefined &&
      this.#fails(turn.error.times, `${request.run.run_id}:${isSummary ? 'summary' : index}`)
    ) {
      throw scriptedError(turn.error, this.name)
    }
    if (request.onDelta !== undefined) {
      for (const word of (turn.text ?? '').match(/\S+\s*|\s+/g) ?? []) request.onDelta(word)
    }
    return buildScriptedTurn(turn, index)
  }

  #fails(times: number | undefined, turn: string): boolean {
    if (times === undefined) return true
    const count = (this.#failed.get(turn) ?? 0) + 1
    this.#failed.set(turn, count)
    if (this.#failed.size > MAX_COUNTS) this.#failed.delete(this.#failed.keys().next().value!)
    return count <= times
  }
}
