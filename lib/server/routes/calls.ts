/** What several routes need that start a run or act on one. @module */
import type { RunDetails, TraceContext } from '../../agent/index.js'
import type { JsonObject } from '../../internal/json.js'
import type { Admission } from '../access/quotas.js'
import type { ServiceConfig } from '../config.js'
import type { ServiceContext } from '../context.js'
import type { Operation, Parameter } from '../describe/operation.js'
import { NO_FIELDS, RUN_DETAILS, validate } from '../describe/schemas.js'
import { draining, invalidField } from '../errors.js'
import { readJson } from '../messages/body.js'
import { json, type Reply } from '../messages/reply.js'
import type { Call } from '../router.js'

export const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'the same key and body within 24 hours return what the first request did',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

export const TRACEPARENT: Parameter = {
  name: 'traceparent',
  in: 'header',
  description: 'the W3C trace that the run joins; ignored when malformed',
  schema: { type: 'string' },
}

/** @throws `ProblemError` 503 for a service that starts no more runs. */
export function checkOpen({ state }: ServiceContext): void {
  if (state !== 'open') throw draining()
}

/**
 * Starts a run within the limits of the caller's tenant.
 *
 * @throws `ProblemError` 429
 */
export async function startRun<T>(
  { quotas }: ServiceContext,
  { caller }: Call,
  begin: (admission: Admission) => Promise<T>,
): Promise<T> {
  return quotas === null ? await begin({}) : await quotas.start(caller.owner.tenant, begin)
}

/** The body of a call, which the engine validates. An absent one counts as an empty object. */
export async function readRequest(
  { request }: Call,
  { maxBodyBytes }: ServiceConfig,
): Promise<JsonObject> {
  return ((await readJson(request, maxBodyBytes)) ?? {}) as JsonObject
}

export async function readNoFields(
  { request }: Call,
  { maxBodyBytes }: ServiceConfig,
): Promise<void> {
  const body = await readJson(request, maxBodyBytes)
  if (body !== undefined) validate(NO_FIELDS, body)
}

/** The reply with a run that a call started, or an earlier one with its Idempotency-Key. */
export function startedReply(
  details: RunDetails,
  created: boolean,
  { basePath }: ServiceConfig,
): Reply {
  const Location = `${basePath}/api/runs/${details.run_id}`
  return json(created ? 201 : 200, details, { Location })
}

const LOCATION = { Location: 'path of the run' }

/** The description of {@link startedReply}. */
export const STARTED: Operation['answers'] = {
  200: {
    description: 'the run that an earlier request with this Idempotency-Key started',
    schema: RUN_DETAILS,
    headers: LOCATION,
  },
  201: { description: 'started', schema: RUN_DETAILS, headers: LOCATION },
}

/** The trace that a request belongs to; the engine ignores a malformed one. */
export function traceOf({ headers }: Call['request']): TraceContext | undefined {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string') return undefined
  return { traceparent, tracestate: tracestate?.toString() ?? null }
}

export function readIdempotencyKey({ headers }: Call['request']): string | undefined {
  const header = headers['idempotency-key']
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw invalidField('/idempotency-key', 'must be 1 to 255 visible ASCII characters', 'header')
}
