/** Runs: start, list, look at, stop, start again, remove. @module */
import {
  START_REQUEST_SCHEMA,
  type RunDetails,
  type RunStatus,
  type TraceContext,
} from '../../agent/index.js'
import { readJson } from '../messages/body.js'
import { draining, invalidField } from '../errors.js'
import { json, jsonText, type Reply } from '../messages/reply.js'
import { matchesTag } from '../messages/etag.js'
import type { Parameter } from '../describe/operation.js'
import { readChoices, readInteger, readText, readTime } from '../messages/query.js'
import type { Call, RouteDefinition } from '../router.js'
import { NO_FIELDS, RUN_DETAILS, RUN_STATUSES, RUN_SUMMARY, validate } from '../describe/schemas.js'
import { VERSION } from '../version.js'
import { JSON_ONLY, type RouteContext } from './route-context.js'

/** Runs in a list that names no limit, and the largest limit. */
const MAX_LISTED = 10_000
/** Longest text to search for, in characters. */
const MAX_SEARCH = 200

/** Runs whose details are kept encoded. */
const DETAILS_KEPT = 256

const LIST_PARAMETERS: readonly Parameter[] = [
  {
    name: 'status',
    in: 'query',
    description: 'any of these',
    schema: { type: 'string', enum: RUN_STATUSES },
    repeated: true,
  },
  { name: 'goal', in: 'query', description: 'the exact goal', schema: { type: 'string' } },
  { name: 'model_name', in: 'query', description: 'the exact model', schema: { type: 'string' } },
  {
    name: 'search',
    in: 'query',
    description: 'words that all stand in the goal, the model or the run id, in any case',
    schema: { type: 'string', maxLength: MAX_SEARCH },
  },
  {
    name: 'created_after',
    in: 'query',
    description: 'created later than this',
    schema: { type: 'string', format: 'date-time' },
  },
  {
    name: 'created_before',
    in: 'query',
    description: 'created earlier than this',
    schema: { type: 'string', format: 'date-time' },
  },
  {
    name: 'limit',
    in: 'query',
    description: 'how many at most; without it all, up to 10 000',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LISTED },
  },
  {
    name: 'cursor',
    in: 'query',
    description: 'where the last page ended, from its Link header',
    schema: { type: 'string' },
  },
]

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'the same key and body within 24 hours give the first run again',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const TRACEPARENT: Parameter = {
  name: 'traceparent',
  in: 'header',
  description: 'the W3C trace that the run then belongs to; ignored when not well-formed',
  schema: { type: 'string' },
}

/** The routes of runs. */
export function runRoutes(context: RouteContext): readonly RouteDefinition[] {
  const runs = new RunRoutes(context)
  return [
    {
      method: 'POST',
      path: '/api/runs',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'createRun',
        summary: 'Start a run',
        parameters: [IDEMPOTENCY_KEY, TRACEPARENT],
        body: { schema: START_REQUEST_SCHEMA },
        answers: {
          200: {
            description: 'the run that this Idempotency-Key started before',
            schema: RUN_DETAILS,
            headers: { Location: 'path of the run' },
          },
          201: {
            description: 'started',
            schema: RUN_DETAILS,
            headers: { Location: 'path of the run' },
          },
        },
        problems: [409, 429],
      },
      handle: (call) => runs.create(call),
    },
    {
      method: 'GET',
      path: '/api/runs',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'listRuns',
        summary: 'List runs, newest first',
        parameters: LIST_PARAMETERS,
        answers: {
          200: {
            description: 'the runs',
            schema: { type: 'array', items: RUN_SUMMARY },
            headers: { Link: 'the next page, as rel="next", when there is one' },
          },
        },
        problems: [422],
      },
      handle: (call) => runs.list(call),
    },
    {
      method: 'GET',
      path: '/api/runs/{run_id}',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'getRun',
        summary: 'Look at a run',
        answers: {
          200: {
            description: 'the run',
            schema: RUN_DETAILS,
            headers: { ETag: 'changes with the run' },
          },
          304: { description: 'as the client has it (If-None-Match)' },
        },
        problems: [404],
      },
      handle: (call) => runs.get(call),
    },
    {
      method: 'DELETE',
      path: '/api/runs/{run_id}',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'deleteRun',
        summary: 'Remove an ended run and its log',
        answers: { 204: { description: 'removed' } },
        problems: [404, 409],
      },
      handle: (call) => runs.delete(call),
    },
    {
      method: 'POST',
      path: '/api/runs/{run_id}/abort',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'abortRun',
        summary: 'Stop a run',
        body: { schema: NO_FIELDS, optional: true },
        answers: {
          200: { description: 'it was aborted before', schema: RUN_DETAILS },
          202: { description: 'it stops', schema: RUN_DETAILS },
        },
        problems: [404, 409],
      },
      handle: (call) => runs.abort(call),
    },
    {
      method: 'POST',
      path: '/api/runs/{run_id}/retry',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'retryRun',
        summary: 'Start the same request again, as a new run',
        parameters: [TRACEPARENT],
        body: { schema: NO_FIELDS, optional: true },
        answers: {
          201: {
            description: 'started',
            schema: RUN_DETAILS,
            headers: { Location: 'path of the new run' },
          },
        },
        problems: [404, 409, 429],
      },
      handle: (call) => runs.retry(call),
    },
  ]
}

class RunRoutes {
  readonly #context: RouteContext
  readonly #encoded = new EncodedDetails()

  constructor(context: RouteContext) {
    this.#context = context
  }

  async create({ request, caller }: Call): Promise<Reply> {
    const { engine, config } = this.#context
    this.#checkOpen()
    const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key'])
    const body = await readJson(request, config.maxBodyBytes)
    // What it holds is for the engine to judge; an absent body is judged as an empty one.
    const start = (body ?? {}) as Parameters<typeof engine.create>[0]
    const { details, created } = await engine.create(start, {
      caller,
      idempotencyKey,
      trace: traceOf(request),
    })
    return json(created ? 201 : 200, details, this.#location(details))
  }

  async list({ query, caller }: Call): Promise<Reply> {
    const { engine, config } = this.#context
    const limit = readInteger(query, 'limit', 1, MAX_LISTED) ?? MAX_LISTED
    const { runs, next } = await engine.list({
      tenant: caller.owner.tenant,
      status: readChoices<RunStatus>(query, 'status', RUN_STATUSES),
      goal: readText(query, 'goal'),
      modelName: readText(query, 'model_name'),
      search: readSearch(query),
      createdAfter: readTime(query, 'created_after'),
      createdBefore: readTime(query, 'created_before'),
      limit,
      cursor: readText(query, 'cursor'),
    })
    if (next === null) return json(200, runs)
    const nextQuery = new URLSearchParams(query)
    nextQuery.set('limit', String(limit))
    nextQuery.set('cursor', next)
    return json(200, runs, { Link: `<${config.basePath}/api/runs?${nextQuery}>; rel="next"` })
  }

  async get({ request, parameter, caller }: Call): Promise<Reply> {
    const details = await this.#context.engine.get(parameter, caller)
    const known = request.headers['if-none-match']
    if (known !== undefined) {
      const headers = validatorsOf(details)
      if (matchesTag(known, headers.ETag)) return { status: 304, headers }
    }
    return this.#encoded.reply(details)
  }

  async delete({ parameter, caller }: Call): Promise<Reply> {
    await this.#context.engine.delete(parameter, caller)
    this.#encoded.forget(parameter)
    return { status: 204 }
  }

  async abort(call: Call): Promise<Reply> {
    await this.#readNothing(call)
    const { details, already } = await this.#context.engine.abort(call.parameter, call.caller)
    return json(already ? 200 : 202, details)
  }

  async retry(call: Call): Promise<Reply> {
    this.#checkOpen()
    await this.#readNothing(call)
    const details = await this.#context.engine.retry(
      call.parameter,
      call.caller,
      traceOf(call.request),
    )
    return json(201, details, this.#location(details))
  }

  async #readNothing({ request }: Call): Promise<void> {
    const body = await readJson(request, this.#context.config.maxBodyBytes)
    if (body !== undefined) validate(NO_FIELDS, body)
  }

  #checkOpen(): void {
    if (this.#context.isDraining()) throw draining()
  }

  #location({ run_id }: RunDetails): Record<string, string> {
    return { Location: `${this.#context.config.basePath}/api/runs/${run_id}` }
  }
}

/** Details as JSON, kept for the runs looked at last: their text changes only with `last_seq`. */
class EncodedDetails {
  readonly #kept = new Map<string, { readonly seq: number; readonly reply: Reply }>()

  reply(details: RunDetails): Reply {
    const { run_id, last_seq: seq } = details
    const kept = this.#kept.get(run_id)
    if (kept !== undefined && kept.seq === seq) return kept.reply
    const reply = jsonText(200, JSON.stringify(details), validatorsOf(details))
    // Taken out first, so that the oldest entry stays the first one of the map.
    this.#kept.delete(run_id)
    this.#kept.set(run_id, { seq, reply })
    if (this.#kept.size > DETAILS_KEPT) this.#kept.delete(this.#kept.keys().next().value!)
    return reply
  }

  forget(runId: string): void {
    this.#kept.delete(runId)
  }
}

/** Headers by which a client asks again for details that it has. */
function validatorsOf({ last_seq }: RunDetails): {
  readonly ETag: string
  readonly 'Cache-Control': string
} {
  return { ETag: `"${VERSION}-${last_seq}"`, 'Cache-Control': 'no-cache' }
}

/** The trace that a request belongs to; the engine ignores what is not well-formed. */
function traceOf({ headers }: Call['request']): TraceContext | undefined {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string') return undefined
  return { traceparent, tracestate: tracestate?.toString() ?? null }
}

function readSearch(query: URLSearchParams): string | undefined {
  const search = readText(query, 'search')
  if (search === undefined || search.length <= MAX_SEARCH) return search
  throw invalidField('/search', `must have at most ${MAX_SEARCH} characters`, 'query')
}

function readIdempotencyKey(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw invalidField('/idempotency-key', 'must be 1 to 255 visible ASCII characters', 'header')
}
