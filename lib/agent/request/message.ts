/**
 * Messages to a run that has not ended: what is accepted, and as which record. A message with an
 * idempotency key has an id that follows from run, principal and key, so the log alone tells
 * whether it was accepted before, whatever process accepted it.
 *
 * @module
 */
import { hash, uuidV7 } from '../../internal/hash.js'
import type { JsonObject } from '../../internal/json.js'
import {
  IdempotencyError,
  InvalidRequestError,
  RunStateError,
  UnknownRunError,
} from '../errors.js'
import { isTerminal, type EventPayloads, type RecordDraft, type RunStatus } from '../events.js'
import { contentOf } from '../log/messages.js'
import { readLog, type RecordReader } from '../log/read-log.js'
import type { RunState } from '../log/run-state.js'
import { checkRequest } from '../check-schema.js'
import { MESSAGE_BYTES, MESSAGE_SCHEMA } from './workspace-requests.js'

/** Messages to a run that the model has not heard. */
const MAX_WAITING = 100
/** Records read from the store at once. */
const PAGE = 1_000

/** A message that is valid, and not accepted by its run yet. */
export type NewMessage = EventPayloads['user_message']

/** Who sends a message, and by which key repetitions are recognised. */
export interface MessageSender {
  readonly by: string | null
  readonly key: string | undefined
}

/** @throws {@link InvalidRequestError} with a violation per invalid field. */
export function parseMessage(
  runId: string,
  request: JsonObject,
  { by, key }: MessageSender,
  nowMs: number,
): NewMessage {
  const violations = [...checkRequest(MESSAGE_SCHEMA, request)]
  const { text, deliver = 'next_turn' } = request as Partial<NewMessage>
  if (typeof text === 'string') violations.push(...textViolations('/text', text))
  if (violations.length > 0) throw new InvalidRequestError(violations)
  const message_id = key === undefined ? uuidV7(nowMs) : uuidOf([runId, by, key])
  return { message_id, text: text ?? '', deliver, by }
}

/** What a schema cannot say of a text for the model. */
export function textViolations(
  pointer: string,
  text: string,
): { readonly pointer: string; readonly detail: string }[] {
  if (Buffer.byteLength(text) > MESSAGE_BYTES)
    return [{ pointer, detail: `must be at most ${MESSAGE_BYTES} bytes long` }]
  return text.trim() === '' ? [{ pointer, detail: 'must not be blank' }] : []
}

/** A UUID (version 8: by other means) that is the same for the same parts. */
function uuidOf(parts: readonly unknown[]): string {
  const digits = hash('sha256', JSON.stringify(parts))
  const variant = ((Number.parseInt(digits.slice(16, 17), 16) & 3) | 8).toString(16)
  const rest = `${variant}${digits.slice(17, 20)}-${digits.slice(20, 32)}`
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(13, 16)}-${rest}`
}

/** Was the message sent with an idempotency key? Its id tells. */
export function hasKey({ message_id }: NewMessage): boolean {
  return message_id.charAt(14) === '8'
}

/**
 * The record of a message; null when the run has accepted it before.
 *
 * @throws {@link IdempotencyError}, {@link RunStateError}
 */
export function messageRecord(
  { head, messages }: RunState,
  message: NewMessage,
): RecordDraft | null {
  const { run_id, status, iteration } = head.details
  const known = messages.contents.get(message.message_id)
  if (known !== undefined) return repeated(known, message)
  if (isTerminal(status)) throw messageTooLate(run_id, status)
  if (messages.waiting.length >= MAX_WAITING) throw tooManyMessages(run_id)
  return { kind: 'user_message', iteration, payload: message }
}

/**
 * Resolves with the id of a message that a run had accepted before it ended. `isSure`: it had not.
 *
 * @throws {@link IdempotencyError}; {@link RunStateError} when it had not; {@link UnknownRunError}.
 */
export async function assertAccepted(
  store: RecordReader & { head(runId: string): Promise<{ details: { status: RunStatus } } | null> },
  runId: string,
  message: NewMessage,
  isSure: boolean = !hasKey(message),
): Promise<string> {
  for await (const records of !isSure ? readLog(store, runId, PAGE) : []) {
    for (const { kind, payload } of records) {
      if (kind !== 'user_message' || payload.message_id !== message.message_id) continue
      repeated(contentOf(payload), message)
      return message.message_id
    }
  }
  const head = await store.head(runId)
  if (head === null) throw new UnknownRunError(runId)
  throw messageTooLate(runId, head.details.status)
}

function repeated(content: string, message: NewMessage): null {
  if (content !== contentOf(message)) throw new IdempotencyError()
  return null
}

function messageTooLate(runId: string, status: RunStatus): RunStateError {
  return new RunStateError(
    'ended',
    `run ${runId} has ended as ${status}, and the message was not delivered: fork the run with ` +
      'it to go on from there',
  )
}

export function tooManyMessages(runId: string): RunStateError {
  return new RunStateError(
    'too_many_messages',
    `${MAX_WAITING} messages to run ${runId} wait for its model; send more when it has heard some`,
  )
}
