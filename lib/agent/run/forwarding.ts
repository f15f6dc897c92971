/**
 * Messages to runs of a shared store: only the holder of a run appends to it, so others leave their
 * messages for it in the store. The holder appends each once: the log knows their ids.
 *
 * @module
 */
import { sleep } from '../../internal/time.js'
import { IdempotencyError, RunStateError, StoreError, UnknownRunError } from '../errors.js'
import type { RecordDraft } from '../events.js'
import { RunFeed } from '../log/feed.js'
import type { RunState } from '../log/run-state.js'
import { loadState } from '../log/state.js'
import { LogWriter, type LogWriterOptions } from '../log/writer.js'
import {
  assertAccepted,
  messageRecord,
  tooManyMessages,
  type NewMessage,
} from '../request/message.js'
import type { SharedRuns } from '../shared-store.js'

/** Retries after another process appended to the run or claimed it in between. */
const MAX_RACES = 20
const RACE_DELAY_MS = 25

type Append = (message: NewMessage) => Promise<unknown>

/** Brings messages to the process that may append to their runs. */
export class Forwarding {
  readonly #services: LogWriterOptions
  readonly #shared: SharedRuns
  /** Aborted when this process drives no runs any more. */
  readonly #stopped: AbortSignal

  constructor(services: LogWriterOptions, shared: SharedRuns, stopped: AbortSignal) {
    this.#services = services
    this.#shared = shared
    this.#stopped = stopped
  }

  /**
   * Sends a message to a run; resolves with its id once it is durable. `local` appends it if this
   * process holds the run, and is undefined otherwise.
   *
   * @throws as the engine's `message`.
   */
  async send(
    runId: string,
    message: NewMessage,
    local: () => ((message: NewMessage) => Promise<string>) | undefined,
  ): Promise<string> {
    const { clock } = this.#services
    const stopped = this.#stopped
    for (let races = 0; ; races++) {
      try {
        const append = local()
        if (append !== undefined) return await append(message)
        if (await this.#leave(runId, message)) return message.message_id
      } catch (error) {
        if (!wasOvertaken(error) || races === MAX_RACES) throw error
      }
      await sleep(RACE_DELAY_MS, stopped, clock)
    }
  }

  /** Appends what was left for a run with `append`, and answers it. */
  async deliver(runId: string, append: Append): Promise<void> {
    const shared = this.#shared
    for (const message of await shared.takeMessages(runId)) {
      const { message_id } = message
      try {
        await append(message)
        await shared.answerMessage(runId, message_id, 'accepted')
      } catch (error) {
        if (error instanceof IdempotencyError)
          await shared.answerMessage(runId, message_id, 'key_reused')
        else if (error instanceof RunStateError && error.problem === 'too_many_messages')
          await shared.answerMessage(runId, message_id, 'too_many')
        else throw error
      }
    }
  }

  /** Resolves with false when the situation has changed: try again. */
  async #leave(runId: string, message: NewMessage): Promise<boolean> {
    const shared = this.#shared
    const left = await shared.leaveMessage(runId, message)
    switch (left) {
      case 'accepted':
        return true
      case 'kept':
        // Nobody appends to the log until the run is claimed, so it tells what will be answered.
        await this.#recordOf(runId, message)
        return true
      case 'unclaimed':
        await this.deliver(runId, (earlier) => this.#append(runId, earlier))
        await this.#append(runId, message)
        return true
      case 'ended':
        await assertAccepted(this.#services.store, runId, message, false)
        return true
      case 'too_many':
        throw tooManyMessages(runId)
      case 'key_reused':
        throw new IdempotencyError()
      case 'unanswered': {
        const text = `the process that drives run ${runId} takes no messages now; try again later`
        throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', text)
      }
    }
  }

  /** Appends to a run that no process holds. */
  async #append(runId: string, message: NewMessage): Promise<void> {
    const { record, state } = await this.#recordOf(runId, message)
    if (record === null) return
    const feed = new RunFeed(runId, this.#services.store, state.head.details.last_seq)
    await new LogWriter(this.#services, feed, state).offer([record])
  }

  async #recordOf(
    runId: string,
    message: NewMessage,
  ): Promise<{ readonly record: RecordDraft | null; readonly state: RunState }> {
    const state = await loadState(this.#services.store, runId)
    if (state === null) throw new UnknownRunError(runId)
    return { record: messageRecord(state, message), state }
  }
}

/** Did another process append first, or does it hold the run right now? */
export function wasOvertaken(error: unknown): boolean {
  return (
    error instanceof StoreError &&
    ['ERR_AGENT_SEQ_CONFLICT', 'ERR_AGENT_CLAIM_LOST'].includes(error.code)
  )
}
