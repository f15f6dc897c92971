/**
 * The form of the table of exchanges: what a provider answers, and the turn or error that results.
 * `decode()` plays an exchange in pieces of any size, `fetchForm()` fetches it from a server.
 */
import assert from 'node:assert/strict'
import {
  HttpModel, ModelError,
  type CallUsage, type JsonObject, type JsonValue, type ModelErrorCode, type ModelRequest,
  type ModelTurn, type StopReason,
} from 'runwright/agent'
import { deepFreeze } from '../../../../lib/internal/freeze.js'
import { providerError } from '../../../../lib/agent/models/provider-errors.js'
import { answering, type Delivery } from '../../../helpers/deliveries.js'
import { afterCalls, context, decodePieces, modelRequest } from '../exchange.js'
import { ADAPTERS, sse, STREAMS, type Dialect } from './dialects.js'

/** Facts of a turn; omitted ones are not compared. */
export interface TurnFacts {
  readonly text?: string | RegExp
  readonly reasoning?: string | RegExp
  /** The text that a stream shows while it arrives. @defaultValue the text */
  readonly shown?: string
  readonly stop?: StopReason
  readonly calls?: readonly (readonly [tool: string, args: object])[]
  readonly ids?: readonly string[]
  /** The error of every call. @defaultValue calls have no error */
  readonly callError?: RegExp
  /** Input, output, cached and reasoning tokens. */
  readonly usage?: readonly [number, number, number, number]
}

/** Facts of an error; omitted ones are not compared. */
export interface ErrorFacts {
  readonly code?: ModelErrorCode
  readonly retryable: boolean
  /** The model's own mistake, which it may repair. */
  readonly isMistake?: boolean
  readonly message?: string | RegExp
  /** Milliseconds; null for none. */
  readonly retryAfterMs?: number | null
  /** Input and output tokens; null for none. */
  readonly used?: readonly [number, number] | null
}

/** An error response. */
export interface Refused {
  /** Null for an error inside a stream. */
  readonly status: number | null
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

/** A row of the table: a provider's answer in one or several forms, and what each of them gives. */
export interface Exchange {
  readonly title: string
  /** A whole answer, which is also played as the stream that says the same. */
  readonly whole?: JsonObject
  /** An answer that only comes whole. */
  readonly body?: unknown
  /** Events of a stream, where a string is a complete line; or the text of a stream. */
  readonly stream?: string | readonly unknown[]
  readonly refused?: Refused
  /** What the answer is decoded for. */
  readonly request?: Partial<ModelRequest>
  /** The name of the model that the turn is sent back to. */
  readonly model?: string
  readonly gives?: TurnFacts
  readonly fails?: ErrorFacts
  /** The beginning of what the next request says after what this one said. */
  readonly back?: readonly unknown[]
}

/** An answer in one of its forms. */
export type Form =
  | { readonly kind: 'whole'; readonly body: unknown }
  | { readonly kind: 'streamed'; readonly text: string }
  | { readonly kind: 'refused'; readonly refused: Refused }

/** Returns the forms in which an exchange is played. */
export function formsOf(dialect: Dialect, row: Exchange, isNamed = false): readonly Form[] {
  const { whole, body = whole, stream, refused } = row
  const text = typeof stream === 'string' ? stream : stream && streamText(stream, isNamed)
  return [
    ...(body === undefined ? [] : [{ kind: 'whole', body } as const]),
    ...(whole === undefined ? [] : [{ kind: 'streamed', text: STREAMS[dialect](whole) } as const]),
    ...(text === undefined ? [] : [{ kind: 'streamed', text } as const]),
    ...(refused === undefined ? [] : [{ kind: 'refused', refused } as const]),
  ]
}

/** Returns the text of these events; a string is a complete line. */
function streamText(events: readonly unknown[], isNamed: boolean): string {
  return events
    .map((one) => (typeof one === 'string' ? `${one}\n\n` : sse([one as JsonValue], isNamed)))
    .join('')
}

/** The result of an exchange. */
export interface Outcome {
  readonly turn: ModelTurn | null
  readonly error: ModelError | null
  /** The text that was shown while the answer came. */
  readonly visible: string
  /** True if the stream itself said that it was complete; only known of decoded streams. */
  readonly isDone?: boolean
}

/** The time at which refusals arrive. */
export const NOW: number = Date.parse('2026-03-01T12:00:00Z')

/** Decodes a form; `split` cuts the text of a stream into the pieces in which it arrives. */
export function decode(
  dialect: Dialect,
  row: Exchange,
  form: Form,
  split = (text: string): Iterable<Uint8Array> => [Buffer.from(text)],
): Outcome {
  const adapter = ADAPTERS[dialect]
  const request = deepFreeze(modelRequest(row.request))
  try {
    if (form.kind === 'refused') throw refusalOf(form.refused)
    if (form.kind === 'streamed') {
      const decoder = adapter.decodeStream(request, context)
      return { ...decodePieces(decoder, split(form.text)), error: null, isDone: decoder.done }
    }
    return { turn: adapter.decode(form.body, request, context), error: null, visible: '' }
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    return { turn: null, error, visible: '' }
  }
}

/** Returns the error of a refusal that arrives at `NOW`. */
export function refusalOf({ status, headers = {}, body }: Refused): ModelError {
  const header = (name: string): string | null => headers[name] ?? null
  return providerError({ status, header, body, now: NOW }, context)
}

/** Returns each byte alone. */
export function singleBytes(text: string): readonly Uint8Array[] {
  const bytes = Buffer.from(text)
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
}

/** Fetches a form from a server. */
export async function fetchForm(
  dialect: Dialect,
  row: Exchange,
  form: Form,
  delivery: Delivery,
): Promise<Outcome> {
  const answer =
    form.kind === 'refused'
      ? { ...form.refused, status: form.refused.status ?? 200 }
      : { body: form.kind === 'whole' ? form.body : form.text }
  await using server = await answering([answer], delivery)
  await using model = new HttpModel(ADAPTERS[dialect], {
    model: 'm', baseUrl: server.origin, transport: server.transport,
    stream: form.kind === 'streamed',
  })
  let visible = ''
  const onDelta = (text: string): void => void (visible += text)
  const request = deepFreeze(modelRequest({ ...row.request, onDelta }))
  const [result] = await Promise.allSettled([model.complete(request)])
  if (result.status === 'fulfilled') return { turn: result.value, error: null, visible }
  if (!(result.reason instanceof ModelError)) throw result.reason
  return { turn: null, error: result.reason, visible }
}

/** Asserts that a form of the exchange had the result that its row expects. */
export function assertOutcome(
  dialect: Dialect,
  row: Exchange,
  form: Form,
  outcome: Outcome,
): void {
  const { turn, error, visible } = outcome
  if (row.fails !== undefined) {
    assert.ok(error !== null, 'it fails')
    assertError(error, row.fails)
    if (form.kind === 'refused' && form.refused.status !== null)
      assert.equal(error.statusCode, form.refused.status)
    return
  }
  assert.ok(turn !== null, error?.stack)
  assertTurn(turn, row.gives ?? {})
  // Only the end of its stream says that an answer of Gemini is complete.
  if (row.stream === undefined && outcome.isDone !== undefined)
    assert.equal(outcome.isDone, dialect !== 'gemini')
  if (form.kind === 'streamed') assert.equal(visible, row.gives?.shown ?? turn.message.text)
  const sent = sentBack(dialect, turn, row.model)
  if (row.back !== undefined) assert.deepEqual(sent.slice(1, 1 + row.back.length), row.back)
}

function assertText(found: string, expected: string | RegExp | undefined): void {
  if (typeof expected === 'string') assert.equal(found, expected)
  else if (expected !== undefined) assert.match(found, expected)
}

function assertTurn({ message, reasoning, stop, usage }: ModelTurn, facts: TurnFacts): void {
  const { calls } = message
  assertText(message.text, facts.text)
  assertText(reasoning, facts.reasoning)
  const found = {
    stop, usage: tokensOf(usage),
    ids: calls.map(({ call_id }) => call_id), calls: calls.map(({ tool, args }) => [tool, args]),
  }
  for (const name of ['stop', 'ids', 'calls', 'usage'] as const)
    if (facts[name] !== undefined) assert.deepEqual(found[name], facts[name], name)
  assert.equal(new Set(found.ids).size, calls.length, 'ids are unique')
  for (const { error = '', args } of calls) {
    if (facts.callError === undefined) assert.equal(error, '')
    else {
      assert.match(error, facts.callError)
      assert.deepEqual(args, {})
    }
  }
}

function tokensOf(usage: CallUsage): readonly number[] {
  return [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens]
}

function assertError(error: ModelError, facts: ErrorFacts): void {
  const { code, retryable, isMistake = false, message, retryAfterMs, used } = facts
  if (code !== undefined) assert.equal(error.code, code)
  assert.equal(error.retryable, retryable, error.message)
  assert.equal(error.modelMistake, isMistake)
  assertText(error.message, message)
  if (retryAfterMs !== undefined) assert.equal(error.retryAfterMs ?? null, retryAfterMs)
  if (used !== undefined) {
    const { usage } = error
    assert.deepEqual(usage === undefined ? null : tokensOf(usage).slice(0, 2), used)
  }
}

/** Returns the messages, input or contents of the request that follows the turn and its results. */
export function sentBack(dialect: Dialect, turn: ModelTurn, model = 'm'): readonly JsonObject[] {
  const results = turn.message.calls.map((_, i) => ({ output: `result ${i}` }))
  const request = deepFreeze(modelRequest({ messages: afterCalls(turn, results) }))
  const { body } = ADAPTERS[dialect].encode(request, { model, stream: true })
  return (body['messages'] ?? body['input'] ?? body['contents']) as readonly JsonObject[]
}

/** The first event without which an answer is not over. */
const ENDS: Readonly<Record<Dialect, RegExp>> = {
  'openai-chat': /"finish_reason":"/,
  'openai-responses': /"type":"response\.(?:completed|incomplete)"/,
  anthropic: /"type":"message_delta"/,
  gemini: /"(?:finish|block)Reason":"/,
}

/** Returns an index within the event that ends the answer of a stream, or -1 without that event. */
export function startOfEnd(dialect: Dialect, text: string): number {
  return text.search(ENDS[dialect])
}
