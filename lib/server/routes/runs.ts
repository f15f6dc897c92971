/** Runs: create, list, get, change, delete, abort, retry. @module */
import {
  START_REQUEST_SCHEMA,
  UPDATE_SCHEMA,
  type EndReason,
  type RunDetails,
  type RunStatus,
  type RunSummary,
} from '../../agent/index.js'
import { DEFAULT_SORT, RUN_SORTS } from '../../internal/run-sorts.js'
import type { ServiceContext } from '../context.js'
import type { Parameter } from '../describe/operation.js'
import {
  END_REASONS, NO_FIELDS, RUN_DETAILS, RUN_STATUSES, RUN_SUMMARY,
} from '../describe/schemas.js'
import { invalidField } from '../errors.js'
import { matchesTag } from '../messages/etag.js'
import {
  readChoice, readChoices, readInteger, readNamed, readText, readTime, readValue,
} from '../messages/query.js'
import { json, jsonText, type Reply } from '../messages/reply.js'
import type { RouteDefinition } from '../router.js'
import { VERSION } from '../../internal/version.js'
import {
  checkOpen,
  IDEMPOTENCY_KEY,
  readIdempotencyKey,
  readNoFields,
  readRequest,
  STARTED,
  startRun,
  startedReply,
  TRACEPARENT,
  traceOf,
} from './calls.js'

/** The largest limit of a list, and its default. */
const MAX_LISTED = 10_000
/** Longest search text, in characters. */
const MAX_SEARCH = 200

/** Runs whose encoded details are cached. */
const MAX_ENCODED = 256

const ROLES = ['root'] as const
/** As many names as the metadata of a run has. */
const MAX_NAMES = 32

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
    name: 'cwd',
    in: 'query',
    description: 'the exact folder, as in the details; empty: runs without a folder',
    schema: { type: 'string' },
  },
  {
    name: 'end_reason',
    in: 'query',
    description: 'any of these',
    schema: { type: 'string', enum: END_REASONS },
    repeated: true,
  },
  {
    name: 'metadata',
    in: 'query',
    description: '`metadata.<name>=<value>`: the exact value of this name, in the metadata',
    schema: { type: 'string' },
    prefix: true,
  },
  {
    name: 'search',
    in: 'query',
    description: 'words that all occur in the goal, the model or the run id, ignoring case',
    schema: { type: 'string', maxLength: MAX_SEARCH },
  },
  {
    name: 'root',
    in: 'query',
    description: 'the id of a root: only the runs of its tree, the root included',
    schema: { type: 'string', minLength: 1 },
  },
  {
    name: 'parent',
    in: 'query',
    description: 'the id of a run: only the attempts and delegates that it has started',
    schema: { type: 'string', minLength: 1 },
  },
  {
    name: 'role',
    in: 'query',
    description: '`root`: only runs that no other run has started',
    schema: { type: 'string', enum: ROLES },
  },
  {
    name: 'created_after',
    in: 'query',
    description: 'only runs created after this time',
    schema: { type: 'string', format: 'date-time' },
  },
  {
    name: 'created_before',
    in: 'query',
    description: 'only runs created before this time',
    schema: { type: 'string', format: 'date-time' },
  },
  {
    name: 'sort',
    in: 'query',
    description:
      'the order: by creation, or before that by folder, end reason, or the run that started it; ' +
      'runs without any come first; `-` reverses the whole',
    schema: { type: 'string', enum: RUN_SORTS, default: DEFAULT_SORT },
  },
  {
    name: 'limit',
    in: 'query',
    description: 'at most this many; by default all, up to 10 000',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LISTED },
  },
  {
    name: 'cursor',
    in: 'query',
    description: 'where the previous page ended, from its Link header',
    schema: { type: 'string' },
  },
]

export function runRoutes(context: ServiceContext): readonly RouteDefinition[] {
  const encoded = new EncodedDetails()
  return [
    createRun(context),
    listRuns(context),
    getRun(context, encoded),
    updateRun(context),
    deleteRun(context, encoded),
    abortRun(context),
    retryRun(context),
  ]
}

function createRun(context: ServiceContext): RouteDefinition {
  const { engine, config } = context
  return {
    method: 'POST',
    path: '/api/runs',
    operation: {
      id: 'createRun',
      summary: 'Start a run',
      parameters: [IDEMPOTENCY_KEY, TRACEPARENT],
      body: { schema: START_REQUEST_SCHEMA },
      answers: STARTED,
      problems: [409, 429],
    },
    handle: async (call) => {
      checkOpen(context)
      const { request, caller } = call
      const idempotencyKey = readIdempotencyKey(request)
      const start = await readRequest(call, config)
      const trace = traceOf(request)
      const options = { caller, idempotencyKey, trace }
      const { details, created } = await startRun(context, call, (admission) =>
        engine.create(start, { ...options, ...admission }),
      )
      return startedReply(details, created, config)
    },
  }
}

function listRuns({ engine, config }: ServiceContext): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs',
    operation: {
      id: 'listRuns',
      summary: 'List runs',
      parameters: LIST_PARAMETERS,
      answers: {
        200: {
          description: 'the runs',
          schema: { type: 'array', items: RUN_SUMMARY },
          headers: { Link: 'the next page, as rel="next", if there is one' },
        },
      },
      problems: [422],
    },
    handle: async ({ query, caller, principal }) => {
      const limit = readInteger(query, 'limit', 1, MAX_LISTED) ?? MAX_LISTED
      const listed = await engine.list({
        tenant: caller.owner.tenant,
        status: readChoices<RunStatus>(query, 'status', RUN_STATUSES),
        goal: readText(query, 'goal'),
        modelName: readText(query, 'model_name'),
        cwd: readText(query, 'cwd'),
        endReason: readChoices<EndReason>(query, 'end_reason', END_REASONS),
        metadata: readNamed(query, 'metadata', MAX_NAMES),
        search: readSearch(query),
        root: readValue(query, 'root'),
        parent: readValue(query, 'parent'),
        role: readChoice(query, 'role', ROLES),
        createdAfter: readTime(query, 'created_after'),
        createdBefore: readTime(query, 'created_before'),
        sort: readChoice(query, 'sort', RUN_SORTS),
        limit,
        cursor: readText(query, 'cursor'),
      })
      // What is wrong with a run may name a path of the store.
      const runs = principal?.tenant == null ? listed.runs : listed.runs.map(withoutPaths)
      const { next } = listed
      if (next === null) return json(200, runs)
      const nextQuery = new URLSearchParams(query)
      nextQuery.set('limit', String(limit))
      nextQuery.set('cursor', next)
      return json(200, runs, { Link: `<${config.basePath}/api/runs?${nextQuery}>; rel="next"` })
    },
  }
}

function getRun({ engine }: ServiceContext, encoded: EncodedDetails): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}',
    operation: {
      id: 'getRun',
      summary: 'Get a run',
      answers: {
        200: {
          description: 'the run',
          schema: RUN_DETAILS,
          headers: { ETag: 'changes with the run' },
        },
        304: { description: 'not modified (If-None-Match)' },
      },
      problems: [404],
    },
    handle: async ({ request, parameter, caller }) => {
      const details = await engine.get(parameter, caller)
      const known = request.headers['if-none-match']
      if (known !== undefined) {
        const headers = validatorsOf(details)
        if (matchesTag(known, headers.ETag)) return { status: 304, headers }
      }
      return encoded.reply(details)
    },
  }
}

function updateRun({ engine, config }: ServiceContext): RouteDefinition {
  return {
    method: 'PATCH',
    path: '/api/runs/{run_id}',
    operation: {
      id: 'updateRun',
      summary: 'Change the request of a run that has not ended',
      description: 'The next check goes by it, and the model of the run hears of it.',
      parameters: [IDEMPOTENCY_KEY],
      body: { schema: UPDATE_SCHEMA },
      answers: { 200: { description: 'the change is stored', schema: RUN_DETAILS } },
      problems: [404, 409, 429],
    },
    handle: async (call) => {
      const { request, parameter, caller } = call
      const idempotencyKey = readIdempotencyKey(request)
      const update = await readRequest(call, config)
      return json(200, await engine.update(parameter, update, { caller, idempotencyKey }))
    },
  }
}

function deleteRun({ engine }: ServiceContext, encoded: EncodedDetails): RouteDefinition {
  return {
    method: 'DELETE',
    path: '/api/runs/{run_id}',
    operation: {
      id: 'deleteRun',
      summary: 'Delete an ended run, its log, and all runs that it has started',
      answers: { 204: { description: 'deleted' } },
      problems: [404, 409],
    },
    handle: async ({ parameter, caller }) => {
      await engine.delete(parameter, caller)
      encoded.forget(parameter)
      return { status: 204 }
    },
  }
}

function abortRun({ engine, config }: ServiceContext): RouteDefinition {
  return {
    method: 'POST',
    path: '/api/runs/{run_id}/abort',
    operation: {
      id: 'abortRun',
      summary: 'Abort a run',
      body: { schema: NO_FIELDS, optional: true },
      answers: {
        200: { description: 'it was aborted before', schema: RUN_DETAILS },
        202: { description: 'it is stopping', schema: RUN_DETAILS },
      },
      problems: [404, 409],
    },
    handle: async (call) => {
      await readNoFields(call, config)
      const { details, already } = await engine.abort(call.parameter, call.caller)
      return json(already ? 200 : 202, details)
    },
  }
}

function retryRun(context: ServiceContext): RouteDefinition {
  const { engine, config } = context
  return {
    method: 'POST',
    path: '/api/runs/{run_id}/retry',
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
    handle: async (call) => {
      checkOpen(context)
      await readNoFields(call, config)
      const { request, parameter, caller } = call
      const details = await startRun(context, call, async ({ admit }) => {
        await admit?.()
        return await engine.retry(parameter, caller, traceOf(request))
      })
      return startedReply(details, true, config)
    },
  }
}

function withoutPaths(run: RunSummary): RunSummary {
  const problem = 'this run cannot be used; ask the operator of this service'
  return run.problem === null ? run : { ...run, problem }
}

/** Replies with details, cached for the runs read last: the text changes only with `last_seq`. */
class EncodedDetails {
  readonly #cache = new Map<string, { readonly seq: number; readonly reply: Reply }>()

  reply(details: RunDetails): Reply {
    const { run_id, last_seq: seq } = details
    const cached = this.#cache.get(run_id)
    if (cached?.seq === seq) return cached.reply
    const reply = jsonText(200, JSON.stringify(details), validatorsOf(details))
    // Deleted first, so that the least recently changed entry stays first in the map.
    this.#cache.delete(run_id)
    this.#cache.set(run_id, { seq, reply })
    if (this.#cache.size > MAX_ENCODED) this.#cache.delete(this.#cache.keys().next().value!)
    return reply
  }

  forget(runId: string): void {
    this.#cache.delete(runId)
  }
}

/** Headers with which a client revalidates the details it has. */
function validatorsOf({ last_seq }: RunDetails): {
  readonly ETag: string
  readonly 'Cache-Control': string
} {
  return { ETag: `"${VERSION}-${last_seq}"`, 'Cache-Control': 'no-cache' }
}

function readSearch(query: URLSearchParams): string | undefined {
  const search = readText(query, 'search')
  if (search === undefined || search.length <= MAX_SEARCH) return search
  throw invalidField('/search', `must have at most ${MAX_SEARCH} characters`, 'query')
}
