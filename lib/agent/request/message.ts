/**
 * Messages to a run that has not ended: what is accepted, and as which record. A change of its
 * request is a message as well, so that its model hears of it. A message with an
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
import { globViolations } from '../goals/may-change.js'
import type { RunDetails } from '../run-details.js'
import { checkRequest } from '../check-schema.js'
import { NEEDS_FOLDER } from './new-run.js'
import {
  MESSAGE_BYTES, MESSAGE_SCHEMA, UPDATE_SCHEMA, type RunUpdate,
} from './workspace-requests.js'

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
  return { message_id: idOf(runId, by, key, nowMs), text: text ?? '', deliver, by }
}

/**
 * The message by which a run gets another `may_change`.
 *
 * @throws {@link InvalidRequestError} with a violation per invalid field.
 */
export function parseUpdate(
  { run_id, workspace }: Pick<RunDetails, 'run_id' | 'workspace'>,
  request: JsonObject,
  { by, key }: MessageSender,
  nowMs: number,
): NewMessage {
  const violations = [...checkRequest(UPDATE_SCHEMA, request)]
  const { may_change } = request as unknown as RunUpdate
  if (violations.length === 0) violations.push(...globViolations(may_change))
  if (violations.length === 0 && workspace === 'none')
    violations.push({ pointer: '/may_change', detail: NEEDS_FOLDER })
  if (violations.length > 0) throw new InvalidRequestError(violations)
  const text = mayChangeText(may_change)
  return {
    message_id: idOf(run_id, by, key, nowMs), text, deliver: 'next_turn', by,
    may_change: [...may_change],
  }
}

/** Globs that the model is told. */
const MAX_TOLD = 20

function mayChangeText(globs: readonly string[]): string {
  if (globs.length === 0)
    return 'From now on, no change to a file of the check counts as part of your work.'
  const told = globs.slice(0, MAX_TOLD).map((glob) => `- ${glob}`)
  const more = globs.length - told.length
  return [
    'From now on, changes to these files of the check count as part of your work, and to no ' +
      'others:',
    ...told,
    ...(more > 0 ? [`- and ${more} more`] : []),
  ].join('\n')
}

function idOf(runId: string, by: string | null, key: string | undefined, nowMs: number): string {
  return key === undefined ? uuidV7(nowMs) : uuidOf([runId, by, key])
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
  if (isTerminal(status)) throw tooLate(run_id, status, message)
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
  throw tooLate(runId, head.details.status, message)
}

function repeated(content: string, message: NewMessage): null {
  if (content !== contentOf(message)) throw new IdempotencyError()
  return null
}

function tooLate(
  runId: string,
  status: RunStatus,
  { may_change }: NewMessage,
): RunStateError {
  const what = may_change === undefined ? 'the message was not delivered' : 'it was not changed'
  const more = may_change === undefined ? 'it' : 'this may_change'
  return new RunStateError(
    'ended',
    `run ${runId} has ended as ${status}, and ${what}: fork the run with ${more} to go on from ` +
      'there',
  )
}

export function tooManyMessages(runId: string): RunStateError {
  return new RunStateError(
    'too_many_messages',
    `${MAX_WAITING} messages to run ${runId} wait for its model; send more when it has heard some`,
  )
}
