import { isUnavailable, StoreError } from '../errors.js'
import { contentOf } from '../log/messages.js'
import type { LogWriter } from '../log/writer.js'
import { hasKey, messageRecord, type NewMessage } from '../request/message.js'

/** Repetitions that are awaited; the oldest are forgotten. */
const MAX_UNSURE = 100

/** Takes the messages for a run that this process drives, beside its steps. */
export class Inbox {
  /** The ids of messages whose senders were told that they are not stored yet, by content. */
  readonly #unsure = new Map<string, string>()

  /**
   * Appends a message; resolves with its id once it is durable. `busy`: something that nothing may
   * be appended beside, while there is any.
   *
   * @throws as `messageRecord` does; {@link StoreError} when the store is unavailable. If that
   * happened while it was stored, it is stored later, and its repetition is the same message.
   */
  async add(
    log: () => LogWriter,
    message: NewMessage,
    busy: () => Promise<void> | undefined,
  ): Promise<string> {
    // A store that is known to be unavailable gets no message to store later.
    await log().confirm()
    for (let work = busy(); work !== undefined; work = busy()) await work
    const writer = log()
    const content = JSON.stringify([message.by, contentOf(message)])
    const unsure = hasKey(message) ? undefined : this.#unsure.get(content)
    const message_id = unsure ?? message.message_id
    const record = messageRecord(writer.state, { ...message, message_id })
    if (record !== null) writer.append([record]).catch(() => undefined) // as confirm() rejects
    try {
      await writer.confirm()
      this.#unsure.delete(content)
      return message_id
    } catch (error) {
      if (!isUnavailable(error) || writer.hasFailed) throw error
      this.#unsure.set(content, message_id)
      if (this.#unsure.size > MAX_UNSURE) this.#unsure.delete(this.#unsure.keys().next().value!)
      const text = `the message is not stored yet, send it again: ${error.message}`
      throw new StoreError(error.code, text, { cause: error })
    }
  }
}
