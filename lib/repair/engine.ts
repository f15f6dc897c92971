/**
 * The engine of `builtin:repair`. It works as a language model does: through the tools offered to
 * it, and from the conversation alone. Only `repair-model.ts` loads this folder, on first use.
 *
 * `search.ts` is the search as a whole: it sees which tests fail and what they run (`check.ts`,
 * `report.ts`), ranks places (`suspicion.ts`, `executed.ts`) and patches (`candidates.ts`, the
 * operators), tries them by the tool `try_patches`, and makes those that the whole check accepts.
 * `conversation.ts` replays it from the messages. See `docs/design/repair.md`.
 *
 * @module
 */
import { NO_USAGE, type ModelRequest, type ModelTurn } from '../agent/index.js'
import { Session } from './conversation.js'
import { Search } from './search.js'

/** Searches kept in memory, one per run; any other is rebuilt by replaying its conversation. */
const MAX_SESSIONS = 64

/** What it answers to the request for a result. */
const NO_RESULT: ModelTurn = {
  message: { role: 'assistant', text: 'This program repairs code and nothing else.', calls: [] },
  reasoning: '',
  usage: NO_USAGE,
  stop: 'refusal',
}

/** A search, and the newest request of its run. */
interface Known {
  run: ModelRequest['run']
  readonly session: Session
}

/** Continues the search of each run by one turn per request. */
export class RepairEngine {
  readonly #sessions = new Map<string, Known>()

  complete(request: ModelRequest): ModelTurn {
    if (request.result !== undefined) return NO_RESULT
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
    if (known !== undefined) {
      known.run = run
      // Re-inserted as the most recently used.
      this.#sessions.delete(key)
      this.#sessions.set(key, known)
      return known.session
    }
    const { check } = run
    const names = tools.map(({ name }) => name)
    const isCheckFile = (path: string): boolean => made.run.isCheckFile?.(path) ?? false
    const session = new Session(() => new Search({ check, tools: names, isCheckFile }).run())
    const made: Known = { run, session }
    this.#sessions.set(key, made)
    if (this.#sessions.size > MAX_SESSIONS)
      this.#sessions.delete(this.#sessions.keys().next().value!)
    return session
  }
}
