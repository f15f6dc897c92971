/** The event log of a run, in pages or as a stream. See also `streams/websocket.ts`. @module */
import type { EventKind, RunDetails } from '../../agent/index.js'
import type { ServiceEngine } from '../config.js'
import type { ServiceContext } from '../context.js'
import { AGENT_EVENT } from '../describe/event-schemas.js'
import { invalidField, ProblemError } from '../errors.js'
import { readInteger } from '../messages/query.js'
import { jsonText, type Reply } from '../messages/reply.js'
import { requestIdOf } from '../messages/request-id.js'
import type { Call, RouteDefinition } from '../router.js'
import { readKinds, readStreamQuery, STREAM_PARAMETERS } from '../describe/stream-parameters.js'
import type { SseStreams } from '../streams/sse.js'

const EVENT_STREAM = 'text/event-stream'

/** Events of a page without a limit. */
const DEFAULT_PAGE = 1_000
const MAX_PAGE = 10_000
/** Events read from the store at a time. */
const BATCH = 64
/** Characters after which a page ends, whatever its limit. */
const MAX_PAGE_CHARACTERS = 4 * 1024 * 1024

export function eventRoutes(
  context: ServiceContext,
  streams: SseStreams,
): readonly RouteDefinition[] {
  return [readEvents(context, streams), webSocketOnly()]
}

function readEvents(context: ServiceContext, streams: SseStreams): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/events',
    produces: ['application/json', EVENT_STREAM],
    operation: {
      id: 'readEvents',
      summary: 'Read the event log, as a stream or in pages',
      description: `As ${EVENT_STREAM}: the log from \`after\` on, then new events until the end.`,
      parameters: [
        ...STREAM_PARAMETERS,
        {
          name: 'limit',
          in: 'query',
          description: 'events per page; a page of large events has fewer: follow Link',
          schema: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
        },
        {
          name: 'Last-Event-ID',
          in: 'header',
          description: 'streams: takes precedence over `after`',
          schema: { type: 'string' },
        },
      ],
      answers: {
        200: [
          {
            description: 'a page',
            schema: { type: 'array', items: AGENT_EVENT },
            headers: { Link: 'the next page, as rel="next", if there may be more' },
          },
          { description: 'the stream', schema: { type: 'string' }, mediaType: EVENT_STREAM },
        ],
        204: { description: 'the run has ended and all events were read: do not reconnect' },
      },
      problems: [404, 409, 422],
    },
    handle: (call) =>
      call.mediaType === EVENT_STREAM ? stream(context, streams, call) : page(context, call),
  }
}

/** The path of the WebSocket, for requests that are no upgrade. */
function webSocketOnly(): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/ws/{run_id}',
    operation: null,
    handle: () => {
      throw new ProblemError(426, 'upgrade_required', 'this resource is WebSocket only', {
        headers: { Upgrade: 'websocket', Connection: 'Upgrade, close' },
      })
    },
  }
}

async function stream(context: ServiceContext, streams: SseStreams, call: Call): Promise<Reply> {
  const { engine, config } = context
  const { request, query, parameter, caller } = call
  const { kinds, deltas, ...range } = readStreamQuery(query)
  const after = readLastEventId(request.headers['last-event-id']) ?? range.after
  const details = await engine.get(parameter, caller)
  if (isOver(details, after)) return { status: 204 }
  const subscription = await engine.subscribe(parameter, { after, deltas }, caller)
  if (request.method === 'HEAD') {
    subscription.close()
    return {
      status: 200,
      headers: { 'Content-Type': EVENT_STREAM },
      stream: (response) => response.end(),
    }
  }
  try {
    const onEnd = context.openStream('sse', parameter, call.principal)
    const options = { kinds, stuckMs: config.streams.stuckMs }
    return streams.reply(subscription, options, requestIdOf(request), onEnd)
  } catch (error) {
    subscription.close()
    throw error
  }
}

async function page({ engine, config }: ServiceContext, call: Call): Promise<Reply> {
  const { query, parameter, caller } = call
  const kinds = readKinds(query)
  const after = readInteger(query, 'after', 0, Number.MAX_SAFE_INTEGER) ?? 0
  const limit = readInteger(query, 'limit', 1, MAX_PAGE) ?? DEFAULT_PAGE
  const { last_seq } = await engine.get(parameter, caller)
  if (after > last_seq) throw cursorAhead(after, last_seq)
  const { texts, position, complete } = await readPage(engine, call, { after, limit, kinds })
  const body = `[${texts.join(',')}]`
  if (complete) return jsonText(200, body)
  const next = new URLSearchParams(query)
  next.set('after', String(position))
  return jsonText(200, body, {
    Link: `<${config.basePath}/api/runs/${parameter}/events?${next}>; rel="next"`,
  })
}

interface Page {
  /** Events as JSON. */
  readonly texts: readonly string[]
  /** `seq` of the last event read, whether its kind was wanted or not. */
  readonly position: number
  /** False when there may be more. */
  readonly complete: boolean
}

/** Reads up to `limit` events, fewer when they are large, which bounds the memory of a page. */
async function readPage(
  engine: ServiceEngine,
  { parameter, caller }: Call,
  range: { after: number; limit: number; kinds: ReadonlySet<EventKind> | undefined },
): Promise<Page> {
  const texts: string[] = []
  let { after: position, limit: left } = range
  for (let characters = 0; left > 0 && characters < MAX_PAGE_CHARACTERS;) {
    const limit = Math.min(left, BATCH)
    const events = await engine.events(parameter, { after: position, limit }, caller)
    for (const event of events) {
      position = event.seq
      if (range.kinds?.has(event.kind) === false) continue
      const text = JSON.stringify(event)
      characters += text.length
      texts.push(text)
    }
    if (events.length < limit) return { texts, position, complete: true }
    left -= limit
  }
  return { texts, position, complete: false }
}

/** The last id that an EventSource received; empty when it received none. */
function readLastEventId(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined || header === '') return undefined
  if (typeof header === 'string' && /^\d{1,15}$/.test(header)) return Number(header)
  throw invalidField('/last-event-id', 'must be the id of an event of this run', 'header')
}

/** True when no event will ever follow the cursor. */
function isOver({ ended_at, last_seq }: RunDetails, after: number): boolean {
  return ended_at !== null && (after === -1 || after === last_seq)
}

function cursorAhead(after: number, lastSeq: number): ProblemError {
  const detail = `cursor ${after} is beyond the log, which ends at ${lastSeq}; start again from 0`
  return new ProblemError(409, 'cursor_ahead', detail)
}
