/**
 * Maps a provider's error response to a `ModelError`: whether to retry, when, and what to fix.
 *
 * @module
 */
import { TRANSIENT_STATUSES } from '../../internal/time.js'
import { isJsonObject, type JsonObject, parseJson } from '../../internal/json.js'
import { ModelError, type ModelErrorCode } from '../errors.js'
import { clip } from '../output.js'
import type { CallUsage } from '../usage.js'
import { listOf, objectOf, textOf } from './json-reader.js'

/** The model whose answer is decoded, for error messages, and what to redact from them. */
export interface WireContext {
  /** The model's display name, for example `openai:gpt-5-mini`. */
  readonly model: string
  /** Keys that are redacted from every error message. */
  readonly secrets: readonly string[]
}

/** An error response before it is classified. */
export interface ProviderFailure {
  /** HTTP status; null for an error inside a stream that began with 200. */
  readonly status: number | null
  readonly header: HeaderLookup
  /** Parsed JSON, or text. */
  readonly body: unknown
  /** Epoch milliseconds, for a Retry-After that is a date. */
  readonly now: number
}

const NO_HEADERS: HeaderLookup = () => null

/** The error reported inside a 200 response, with the usage that the response reports, if any. */
export function embeddedError(body: unknown, context: WireContext, usage?: CallUsage): ModelError {
  const error = providerError({ status: null, header: NO_HEADERS, body, now: 0 }, context)
  return usage === undefined ? error : withUsage(error, usage)
}

/** Adds the usage of a failed call to its error, unless there is none or one is already there. */
export function withUsage(error: ModelError, usage: CallUsage | null): ModelError {
  if (usage === null || error.usage !== undefined) return error
  if (usage.input_tokens + usage.output_tokens === 0) return error
  return changed(error, { usage })
}

/** Adds to what an error says. */
export function withWords(error: ModelError, words: string): ModelError {
  return changed(error, { message: error.message + words })
}

function changed(
  error: ModelError,
  more: { readonly message?: string; readonly usage?: CallUsage },
): ModelError {
  const { code, statusCode, retryable, retryAfterMs, modelMistake, cause } = error
  const { message = error.message, usage = error.usage } = more
  const facts = { statusCode, retryable, retryAfterMs, modelMistake, usage }
  return new ModelError(code, message, cause === undefined ? facts : { ...facts, cause })
}

/**
 * Reads the data of one stream event; null for keep-alives and for `[DONE]`.
 *
 * @throws `ModelError` when it is not a JSON object.
 */
export function readPiece(data: string, context: WireContext): JsonObject | null {
  const text = data.trim()
  if (text === '' || text === '[DONE]') return null
  const value = parseJson(text)
  if (isJsonObject(value)) return value
  throw protocolError('a piece of the stream is not JSON', true, context)
}

/** The error for an answer that violates the provider's protocol. */
export function protocolError(
  problem: string,
  retryable: boolean,
  context: WireContext,
): ModelError {
  const message = redactSecrets(`${context.model}: ${problem}`, context.secrets)
  return new ModelError('ERR_AGENT_MODEL_PROTOCOL', message, { retryable })
}

/** The error for a stream that ended before its answer did. */
export function unfinishedStream(context: WireContext): ModelError {
  return protocolError('the stream ended in the middle of the answer', true, context)
}

/** The error for an answer that the model itself broke; the engine passes it on to the model. */
export function mistakeError(problem: string, context: WireContext, usage: CallUsage): ModelError {
  const { model, secrets } = context
  const message = redactSecrets(`${model}: ${shorten(problem, secrets)}`, secrets)
  return new ModelError('ERR_AGENT_MODEL', message, { retryable: false, modelMistake: true, usage })
}

/** In headers, or in those that OpenRouter has in the body. An error in a stream has no time. */
function toldWait({ status, header, body, now }: ProviderFailure): number | undefined {
  if (status === null) return undefined
  const headers = objectOf(objectOf(objectOf(objectOf(body)['error'])['metadata'])['headers'])
  const told = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
  const ofBody = new Map(told as [string, string][])
  return (
    retryAfterFromHeaders(header, now) ??
    retryAfterFromHeaders((name) => ofBody.get(name) ?? null, now)
  )
}

/** The error for an error response of any provider, which may be JSON, HTML or plain text. */
export function providerError(failure: ProviderFailure, context: WireContext): ModelError {
  const facts = readFacts(failure.body, context.secrets)
  const status = failure.status ?? facts.status
  const kind = classify(status, failure.status === null, facts)
  const retryAfterMs = toldWait(failure) ?? facts.retryAfterMs
  const hint = HINTS[kind.code]
  const outcome = status === null ? 'failed while it answered' : `answered ${status}`
  const detail = facts.message === '' ? '' : `: ${facts.message}`
  const message = redactSecrets(`${context.model} ${outcome}${detail}${hint}`, context.secrets)
  return new ModelError(kind.code, message, {
    ...(status === null ? {} : { statusCode: status }),
    retryable: kind.retryable && !forbidsRetry(failure.header, kind.code),
    ...(kind.retryable && retryAfterMs !== undefined ? { retryAfterMs } : {}),
    modelMistake: kind.modelMistake === true,
  })
}

const HINTS: Readonly<Record<ModelErrorCode, string>> = {
  ERR_AGENT_MODEL: '',
  ERR_AGENT_MODEL_AUTH: ' (check the key that the provider was given, and what it may use)',
  ERR_AGENT_MODEL_RATE_LIMIT: '',
  ERR_AGENT_MODEL_QUOTA: ' (a spending limit or quota is used up: waiting does not help, raise it)',
  ERR_AGENT_MODEL_CONTEXT: ' (the request is larger than this model takes)',
  ERR_AGENT_MODEL_FILTER: ' (a content filter refused it: change the goal or the files it reads)',
  ERR_AGENT_MODEL_PROTOCOL: '',
}

interface Kind {
  readonly code: ModelErrorCode
  readonly retryable: boolean
  readonly modelMistake?: boolean
}

function anyOf(...patterns: readonly string[]): RegExp {
  return new RegExp(patterns.join('|'), 'i')
}

const QUOTA = anyOf(
  'insufficient_quota',
  'billing_hard_limit',
  'billing_not_active',
  'spend(?:ing)?[_ ](?:limit|cap)',
  'credit balance is too low',
  'insufficient[_ ](?:balance|credits?|funds)',
  'exceeded your (?:monthly|current) (?:spend|budget)',
  'exceeded_current_quota',
  'usage limits?\\b',
  'arrearage',
  'free-models-per-day',
  // Google: the id of a daily quota, and a quota that is 0 in this plan.
  'perday',
  'limit: 0\\b',
)
const CONTEXT = anyOf(
  'context_length_exceeded',
  'exceed_context_size',
  'request_too_large',
  'request too large',
  'maximum context length',
  'context (?:length|window|size|limit)',
  'maximum model length',
  'prompt is too long',
  'input (?:is )?too long',
  '(?:input|prompt) token count',
  'payload size exceeds',
  // Not the rate limits "too many tokens, please wait" and "too many tokens processed".
  'too many (?:input )?tokens(?!,? (?:please|processed|per))',
  'maximum prompt length',
  'exceeded model token limit',
  'prompt exceeds max',
  'range of input length',
  'max_new_tokens` must be',
  'reduce the length',
)
/** Of filters in front of and behind models; what a model itself refuses is no error. */
const FILTER = anyOf(
  'content_filter',
  'content_policy_violation',
  'content filtering policy',
  'content management policy',
  'responsibleaipolicyviolation',
  'data_inspection_failed',
  'content exists risk',
  'content violates usage guidelines',
  '(?:prompt|input|request|content|output) (?:was|has been) flagged',
)
const AUTH = anyOf(
  'invalid_api_key',
  'incorrect api key',
  'api_key_invalid',
  'api key not valid',
  'invalid x-api-key',
  'authentication_error',
  'permission_error',
)
const RATE = /rate_limit|rate limit|resource_exhausted|too many requests/i
const BUSY = /overloaded|server_error|api_error|internal|unavailable|timeout|timed out|try again/i
const BAD_REQUEST = anyOf(
  'invalid_(?:request|argument|prompt)',
  'not_found',
  'unsupported',
  'usage policy',
  'flagged',
)
/** Codes for model output that the server could not parse. */
const MISTAKES = new Set(['tool_use_failed', 'output_parse_failed', 'json_validate_failed'])

/**
 * Whether a call may succeed later. Beyond HTTP's own statuses, providers answer 409 for a conflict
 * with another request, 498 when Groq lacks capacity, and anything from 500, such as 529. 425 (Too
 * Early) is excluded: it answers TLS early data, which is never sent here.
 */
function isTransient(status: number): boolean {
  if (status === 409 || status === 498 || status >= 500) return true
  return status !== 425 && TRANSIENT_STATUSES.includes(status)
}

/** The body decides before the status, since providers use 400 and 429 for most problems. */
function classify(status: number | null, insideStream: boolean, facts: Facts): Kind {
  if (MISTAKES.has(facts.code))
    return { code: 'ERR_AGENT_MODEL', retryable: false, modelMistake: true }
  if (status === 402 || (status !== 404 && QUOTA.test(facts.all)))
    return fatal('ERR_AGENT_MODEL_QUOTA')
  const mayBeFiltered = status === null || [400, 403, 422, 451].includes(status)
  if (mayBeFiltered && FILTER.test(facts.all)) return fatal('ERR_AGENT_MODEL_FILTER')
  const mayBeTooLong = status === null || [400, 422, 429, 500].includes(status)
  if (status === 413 || (mayBeTooLong && CONTEXT.test(facts.all)))
    return fatal('ERR_AGENT_MODEL_CONTEXT')
  if (status === 401 || status === 403 || AUTH.test(facts.all)) return fatal('ERR_AGENT_MODEL_AUTH')
  if (status === 429 || (status === null && RATE.test(facts.all)))
    return transient('ERR_AGENT_MODEL_RATE_LIMIT')
  if (status !== null && isTransient(status)) return transient('ERR_AGENT_MODEL')
  if (status === null && BUSY.test(facts.all)) return transient('ERR_AGENT_MODEL')
  // A request that was accepted and then failed for no known reason is the server's failure.
  if (insideStream && status === null && !BAD_REQUEST.test(facts.all))
    return transient('ERR_AGENT_MODEL')
  return fatal('ERR_AGENT_MODEL')
}

const fatal = (code: ModelErrorCode): Kind => ({ code, retryable: false })
const transient = (code: ModelErrorCode): Kind => ({ code, retryable: true })

/** Whether `x-should-retry: false` applies; rate limits always pass, so it is ignored for them. */
function forbidsRetry(header: HeaderLookup, code: ModelErrorCode): boolean {
  return (
    code !== 'ERR_AGENT_MODEL_RATE_LIMIT' &&
    header('x-should-retry')?.trim().toLowerCase() === 'false'
  )
}

interface Facts {
  readonly message: string
  readonly code: string
  /** The status that the body names; used when the failure came inside a 200 response. */
  readonly status: number | null
  readonly retryAfterMs: number | undefined
  /** Every text that classification looks at, joined. */
  readonly all: string
}

const MAX_MESSAGE = 1000

function readFacts(body: unknown, secrets: readonly string[]): Facts {
  const whole = typeof body === 'string' ? (parseJson(body) ?? body) : body
  if (Array.isArray(whole)) return readFacts(whole[0], secrets)
  if (!isJsonObject(whole)) return textFacts(textOf(whole), secrets)
  const { error } = whole
  const inner = isJsonObject(error) ? error : whole
  const { code, type, status, metadata, details, failed_generation } = inner
  const messages = [
    textOf(error),
    textOf(inner['message']),
    textOf(whole['detail']),
    textOf(whole['message']),
  ]
  const said = messages.find((text) => text !== '') ?? JSON.stringify(whole['detail'] ?? whole)
  const { raw, provider_name: provider } = objectOf(metadata)
  const words = raw === undefined ? '' : readFacts(raw, secrets).message
  // A gateway, such as OpenRouter, has what the provider behind it said.
  const behind = [textOf(provider), words === said ? '' : words].filter(Boolean).join(': ')
  const message = behind === '' ? said : `${said} (${behind})`
  const reasons = listOf(details).map((detail) => JSON.stringify(detail))
  const parts = [message, code, type, status, raw, ...reasons].map((part) =>
    typeof part === 'object' ? JSON.stringify(part) : String(part ?? ''),
  )
  const generated = textOf(failed_generation)
  return {
    message: shorten(
      generated === '' ? message : `${message}\nWhat the model wrote: ${generated}`,
      secrets,
    ),
    code: textOf(code),
    status: statusOf(code) ?? statusOf(status) ?? statusOf(inner['status_code']),
    retryAfterMs: retryInfoDelay(details) ?? retryAfterFromText(`${said}\n${words}`),
    all: parts.join(' '),
  }
}

function textFacts(text: string, secrets: readonly string[]): Facts {
  const title = /<title>([^<]*)<\/title>/i.exec(text)?.[1]?.trim()
  const message = /^\s*<(?:!doctype|html)/i.test(text)
    ? `an HTML page (${title ?? 'without a title'})`
    : text.trim()
  const shown = shorten(message, secrets)
  return { message: shown, code: '', status: null, retryAfterMs: undefined, all: message }
}

function statusOf(value: unknown): number | null {
  const number =
    typeof value === 'number' ? value : /^[45]\d\d$/.test(textOf(value)) ? Number(value) : 0
  return number >= 400 && number <= 599 ? number : null
}

/** Google's `RetryInfo`: `{"retryDelay": "17s"}` among the details. */
function retryInfoDelay(details: unknown): number | undefined {
  for (const detail of listOf(details)) {
    const wait = durationOf(textOf(objectOf(detail)['retryDelay']))
    if (wait !== undefined) return wait
  }
  return undefined
}

/** Reads `try again in 6m0s` and `retry after 26 seconds`. */
function retryAfterFromText(message: string): number | undefined {
  const wait = /\b(?:try again|retry) (?:in|after) ([\w.]+?)\.?(?:\s+(second|minute)s?\b|[\s,]|$)/i
  const [, amount = '', unit = ''] = wait.exec(message) ?? []
  return durationOf(`${amount}${unit.slice(0, 1).toLowerCase()}`)
}

/** The beginning of a provider's message; what is cut was redacted before. */
function shorten(text: string, secrets: readonly string[]): string {
  return clip(redactSecrets(text, secrets), MAX_MESSAGE)
}

/** Replaces keys in a text: the known ones, and anything of the shape of a key, even shortened. */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, '[key]')
  return clean.replace(
    /\b(?:sk|gsk|xai|pk|rk)-[\w*-]{8,}|\bAIza[\w-]{10,}|\bBearer\s+[\w.~+/-]{8,}=*/g,
    '[key]',
  )
}

/**
 * Reads from response headers how long a provider asks to wait.
 */

/** Returns a header by its lower-case name, or null. */
export type HeaderLookup = (name: string) => string | null

/** Pairs of headers: what remains of a limit, and when it resets. */
const LIMITS = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
  ['x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['ratelimit-remaining', 'ratelimit-reset'],
  ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-reset'],
  ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset'],
  ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-reset'],
  ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-reset'],
] as const

/**
 * Milliseconds that the provider asks to wait: `retry-after-ms`, `retry-after` (seconds or a date,
 * RFC 9110, section 10.2.3), else the latest reset among the exhausted limits. Undefined when no
 * header says.
 *
 * @param now - milliseconds since the epoch.
 */
function retryAfterFromHeaders(header: HeaderLookup, now: number): number | undefined {
  const ms = numberOf(header('retry-after-ms'))
  if (ms !== undefined) return Math.ceil(ms)
  const after = header('retry-after')?.trim() ?? ''
  const seconds = numberOf(after)
  if (seconds !== undefined) return Math.ceil(seconds * 1000)
  const date = dateOf(after, now)
  return date ?? latestReset(header, now)
}

function latestReset(header: HeaderLookup, now: number): number | undefined {
  let latest: number | undefined
  for (const [remaining, reset] of LIMITS) {
    if (numberOf(header(remaining)) !== 0) continue
    const wait = resetTime(header(reset)?.trim() ?? '', now)
    if (wait !== undefined) latest = Math.max(latest ?? 0, wait)
  }
  return latest
}

/** Accepts seconds, a duration such as `6m0s` or `20ms`, an epoch time (s or ms), or a date. */
function resetTime(text: string, now: number): number | undefined {
  const number = numberOf(text)
  if (number === undefined) return durationOf(text) ?? dateOf(text, now)
  if (number > 1e12) return Math.max(0, Math.ceil(number - now))
  if (number > 1e9) return Math.max(0, Math.ceil(number * 1000 - now))
  return Math.ceil(number * 1000)
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Milliseconds of a duration such as `1h2m3.5s` or `120ms`; undefined for any other text. */
export function durationOf(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy)) {
    total += Number(amount) * UNIT_MS[unit!]!
  }
  return Math.ceil(total)
}

function dateOf(text: string, now: number): number | undefined {
  if (!/\d{4}/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}
