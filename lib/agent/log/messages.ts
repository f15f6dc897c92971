/**
 * Pure: the messages that humans and programs send to a run, as the fold of its records sees them.
 * A message waits until a turn of the model says that it was heard: it is in the conversation from
 * then on, before that turn. So it never stands between a call and its result, and a call that was
 * interrupted sends it again.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { sentMessage } from '../conversation/message-prefixes.js'
import type { EventPayloads } from '../events.js'
import type { UserMessage } from '../model.js'

type Sent = EventPayloads['user_message']

/** A message that the model has not heard yet. */
export interface WaitingMessage {
  readonly payload: Sent
  /** As the model gets it. */
  readonly message: UserMessage
}

/** The messages to one run. */
export interface RunMessages {
  /** In the order in which they came. */
  readonly waiting: readonly WaitingMessage[]
  /** What was sent with each id, as {@link contentOf} shortens it: an id is used once. */
  readonly contents: ReadonlyMap<string, string>
}

/** The same, for the fold. */
export interface FoldedMessages extends RunMessages {
  waiting: WaitingMessage[]
  contents: Map<string, string>
}

export function newMessages(first: readonly Sent[] = []): FoldedMessages {
  const messages: FoldedMessages = { waiting: [], contents: new Map() }
  for (const sent of first) noteMessage(messages, sent)
  return messages
}

/** Folds a message that was sent to the run. */
export function noteMessage(messages: FoldedMessages, payload: Sent): void {
  messages.contents.set(payload.message_id, contentOf(payload))
  messages.waiting.push({ payload, message: sentMessage(payload.text) })
}

/** Removes and returns the messages that a turn has heard. */
export function takeHeard(messages: FoldedMessages, ids: readonly string[]): UserMessage[] {
  const heard = new Set(ids)
  const isHeard = ({ payload }: WaitingMessage): boolean => heard.has(payload.message_id)
  const taken = messages.waiting.filter(isHeard)
  messages.waiting = messages.waiting.filter((one) => !isHeard(one))
  return taken.map(({ message }) => message)
}

/** The messages for a model call; `begins`: the first one of an iteration. */
export function dueMessages(
  { waiting }: RunMessages,
  begins: boolean,
): readonly WaitingMessage[] {
  return begins ? waiting : waiting.filter(({ payload }) => payload.deliver === 'next_turn')
}

/** Equal for messages that say the same. */
export function contentOf({ text, deliver, may_change }: Omit<Sent, 'message_id' | 'by'>): string {
  return hash('sha256', JSON.stringify([deliver, text, may_change]), 'base64')
}
