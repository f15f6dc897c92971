/**
 * Replays the answers of an earlier run: for debugging, for testing a change of the engine or of a
 * goal against recorded answers, and for demonstrations without a network.
 *
 * @module
 */
import type { ModelProvider } from '../model-provider.js'
import { ModelError } from '../errors.js'
import type { RunOwner, RunRecord } from '../events.js'
import type { Model, ModelRequest, ModelTurn, StopReason } from '../model.js'
import { type ModelPrices, NO_USAGE, type Usage } from '../usage.js'
import type { RunStore } from '../store.js'
import { mistakeIn } from './mistake-feedback.js'
import { turnIndex } from './scripted/script.js'

/** Records per read from the store. */
const PAGE = 500

/** The part of a run store that replays read. */
export type ReplayStore = Pick<RunStore, 'head' | 'read'>

/** One turn of the earlier run, or the model's mistake that took the place of an answer. */
type RecordedTurn =
  { readonly turn: ModelTurn } | { readonly mistake: string; readonly usage: Usage | undefined }

/** Creates the provider of `replay:<run_id>`. */
export function replayProvider(store: ReplayStore): ModelProvider {
  return {
    id: 'replay',
    description: 'The answers of an earlier run, by its id; no language model, no network',
    isLanguageModel: false,
    suggestions: [],
    create(runId) {
      if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(runId))
        return new ReplayModel(runId, store)
      throw failure(`replay:${runId.slice(0, 100)}`, 'write replay: and the id of a run')
    },
  }
}

/**
 * Replays the turns of a run: the number of turns in the conversation selects the next one. Tools
 * run again and their results may differ, which does not change the answers. Usage is that of the
 * earlier run, at no cost. A run may only replay runs of its own tenant.
 */
export class ReplayModel implements Model {
  readonly name: string
  readonly isLanguageModel = false
  /** Null, so that no conversation is shortened: the number of turns selects the answer. */
  readonly contextWindow = null
  readonly prices: ModelPrices = { input: 0, output: 0, as_of: '2026-01-01' }
  readonly #runId: string
  readonly #store: ReplayStore
  #turns: Promise<readonly RecordedTurn[]> | undefined

  constructor(runId: string, store: ReplayStore) {
    this.name = `replay:${runId}`
    this.#runId = runId
    this.#store = store
  }

  /** @throws `ModelError` when the run does not exist or belongs to another tenant. */
  async assertVisibleTo(owner: RunOwner): Promise<void> {
    const head = await this.#store.head(this.#runId)
    if (head === null || head.owner.tenant !== owner.tenant) {
      throw failure(this.name, `there is no run ${this.#runId}`)
    }
  }

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    if (this.#turns === undefined) {
      const asking = await this.#store.head(request.run.run_id)
      await this.assertVisibleTo(asking?.owner ?? { id: null, tenant: null })
      this.#turns = this.#read()
      // After a failed read the next attempt reads again.
      this.#turns.catch(() => (this.#turns = undefined))
    }
    const turns = await this.#turns
    const index = turnIndex(request)
    const found = turns[index]
    if (found === undefined) {
      throw failure(
        this.name,
        `the run had ${turns.length} turns, and turn ${index + 1} was asked for`,
      )
    }
    if ('mistake' in found) {
      const { usage } = found
      throw new ModelError('ERR_AGENT_MODEL', found.mistake, {
        retryable: false,
        modelMistake: true,
        usage,
      })
    }
    if (found.turn.message.text !== '') request.onDelta?.(found.turn.message.text)
    return found.turn
  }

  async #read(): Promise<readonly RecordedTurn[]> {
    const reader = new TurnReader()
    for (let after = 0; ; ) {
      const records = await this.#store.read(this.#runId, after, PAGE)
      for (const record of records) reader.add(record)
      after = records.at(-1)?.seq ?? after
      if (records.length < PAGE) return reader.turns
    }
  }
}

/** Collects the turns of a log, in which a turn's usage and reasoning precede it. */
class TurnReader {
  readonly turns: RecordedTurn[] = []
  #usage: Usage | undefined
  #reasoning = ''

  add(record: RunRecord): void {
    if (record.kind === 'llm_usage' && record.payload.purpose === 'worker') {
      const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = record.payload
      this.#usage = { input_tokens, output_tokens, cached_tokens, reasoning_tokens }
    } else if (record.kind === 'reasoning') this.#reasoning = record.payload.text
    else if (record.kind === 'model_turn') {
      this.turns.push(this.#turnOf(record))
      this.#usage = undefined
      this.#reasoning = ''
    }
  }

  #turnOf({ payload, private: hidden }: Extract<RunRecord, { kind: 'model_turn' }>): RecordedTurn {
    const feedback = hidden?.feedback
    if (feedback !== undefined) return { mistake: mistakeIn(feedback), usage: this.#usage }
    const message = hidden?.message ?? { role: 'assistant', text: payload.text, calls: [] }
    const stop = payload.stop as StopReason
    return { turn: { message, reasoning: this.#reasoning, usage: this.#usage ?? NO_USAGE, stop } }
  }
}

function failure(name: string, problem: string): ModelError {
  return new ModelError('ERR_AGENT_MODEL', `${name}: ${problem}`, { retryable: false })
}
