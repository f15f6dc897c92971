/**
 * `builtin:repair`: a deterministic program-repair engine behind the {@link Model} seam. It is no
 * language model and says so. It works like one: through the tools that it is offered, from the
 * conversation alone.
 *
 * @module
 */
import type { Model, ModelRequest, ModelTurn } from '../../model.js'
import { NO_USAGE } from '../../usage.js'
import { Session } from './conversation.js'
import { Search } from './search.js'

/** Runs whose place in the search is kept in memory; others are found again by replaying them. */
const MAX_SESSIONS = 64

/**
 * Makes the model `builtin:repair`.
 *
 * Each turn asks for tool calls that run the check, read failing tests and sources, or try small
 * patches one by one. What makes strictly more tests pass, and none fail, is kept; everything else
 * is taken back. A turn without calls means that all tests pass, or, with `stop: 'refusal'` and a
 * text that begins with `No candidate left`, that nothing is left to try.
 *
 * The same messages give the same turn, in any process. Tokens are not counted: there are none.
 */
export function repairModel(): Model {
  return new RepairModel()
}

class RepairModel implements Model {
  readonly name = 'builtin:repair'
  readonly isLanguageModel = false
  readonly contextWindow = null
  readonly prices = { input: 0, output: 0, cached: 0, as_of: '2026-01-01' }
  readonly #sessions = new Map<string, Session>()

  async complete(request: ModelRequest): Promise<ModelTurn> {
    request.signal.throwIfAborted()
    const message = this.#session(request).next(request.messages)
    const givesUp = (message.parts?.value as { gives_up: boolean }).gives_up
    return {
      message,
      reasoning: '',
      usage: NO_USAGE,
      stop: message.calls.length > 0 ? 'tool_calls' : givesUp ? 'refusal' : 'end',
    }
  }

  #session({ run, tools }: ModelRequest): Session {
    const key = JSON.stringify([run.run_id, run.check])
    const known = this.#sessions.get(key)
    const session =
      known ??
      new Session(() =>
        new Search({ check: run.check, cwd: run.cwd, tools: tools.map(({ name }) => name) }).run(),
      )
    // The last used are kept.
    this.#sessions.delete(key)
    this.#sessions.set(key, session)
    if (this.#sessions.size > MAX_SESSIONS)
      this.#sessions.delete(this.#sessions.keys().next().value!)
    return session
  }
}
