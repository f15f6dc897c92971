/**
 * Event streams over WebSocket. Who may read which run is decided before the 101, by the rules of
 * all other calls, and a refusal is an ordinary HTTP response with problem details.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { EventKind, RunSubscription, StreamItem } from '../../agent/index.js'
import {
  prepare,
  WebSocketServer,
  type Admission,
  type AttachableServer,
  type HandshakeOffer,
  type PreparedMessage,
  type Refusal,
  type UpgradeRequest,
  type WebSocketConnection,
} from '../../ws/index.js'
import { STREAM_PROTOCOL, type Principal } from '../access/auth.js'
import { checkCaller } from '../access/origin.js'
import { accountOf, authorized, callerFor, seesAll } from '../access/principal.js'
import type { ServiceContext } from '../context.js'
import { draining, isUnusableRun, ProblemError, problemOf, unknownRun } from '../errors.js'
import { checkQuery } from '../messages/query.js'
import { REQUEST_ID, requestIdOf } from '../messages/request-id.js'
import { targetOf } from '../messages/request-target.js'
import { isRunId } from '../router.js'
import { readStreamQuery, STREAM_PARAMETERS } from '../describe/stream-parameters.js'
import { pump, type EventSink, type PumpEnd, type StreamEnd } from './pump.js'

/** Path of the streams, relative to the mount. */
const STREAMS = '/api/ws/'

/** Largest message from a client. Messages are ignored; commands go over REST. */
const MAX_MESSAGE_BYTES = 4_096
/** Messages per second beyond which a client is disconnected (1008); pings and pongs likewise. */
const MAX_MESSAGES_PER_SECOND = 20
/** Unanswered pings after which a peer counts as lost. */
const MAX_LOST_PINGS = 3

/** The context of an admitted connection. */
interface Reader {
  /** Called once, when the stream has ended. */
  readonly onEnd: (end: StreamEnd) => void
  readonly subscription: RunSubscription<StreamItem>
  readonly kinds: ReadonlySet<EventKind> | undefined
}

/** Close code and reason by how a stream ended; `closed` by the reader needs none. */
const CLOSE_CODES: Readonly<
  Record<Exclude<PumpEnd, 'closed'>, readonly [code: number, reason: string]>
> = {
  run_end: [1000, ''],
  deleted: [4404, 'the run was deleted'],
  shutdown: [1001, 'the service is shutting down; reconnect with after='],
  stuck: [1013, 'the reader does not read; reconnect with after='],
}

/** Encoded frames, shared by all readers. */
const frames = new WeakMap<StreamItem, PreparedMessage>()

function frameOf(event: StreamItem): PreparedMessage {
  let frame = frames.get(event)
  if (frame === undefined) {
    frame = prepare(event.json)
    frames.set(event, frame)
  }
  return frame
}

class SocketSink implements EventSink {
  readonly #connection: WebSocketConnection<Reader>

  constructor(connection: WebSocketConnection<Reader>) {
    this.#connection = connection
  }

  get pending(): number {
    return this.#connection.bufferedAmount
  }

  write(events: readonly StreamItem[]): boolean {
    let room = true
    for (const event of events) {
      const result = this.#connection.send(frameOf(event))
      if (result === 'full') room = false
      if (result === 'closed') this.#connection.context.subscription.close()
    }
    return room
  }

  async drained(): Promise<void> {
    await this.#connection.drained()
  }
}

/** All WebSocket readers of one service. */
export class RunSockets {
  readonly #context: ServiceContext
  readonly #server: WebSocketServer<Reader>

  constructor(context: ServiceContext) {
    this.#context = context
    const { pingMs } = context.config.streams
    this.#server = new WebSocketServer<Reader>({
      protocols: [STREAM_PROTOCOL],
      // Checked in #admit, by the rules of all other calls.
      origins: 'any',
      maxMessageBytes: MAX_MESSAGE_BYTES,
      maxControlFramesPerSecond: MAX_MESSAGES_PER_SECOND,
      keepAlive: { intervalMs: pingMs, timeoutMs: pingMs * MAX_LOST_PINGS },
      authorize: (request, offer) => this.#admit(request, offer),
      onConnection: (connection) => this.#follow(connection),
      onError: (error) => this.#report(error),
    })
  }

  /** Answers one upgrade, whatever its path. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.upgrade(request, socket, head).catch((error: unknown) => this.#report(error))
  }

  /** Serves a server's upgrades for event streams, over HTTP/1.1 and HTTP/2. */
  attach(server: AttachableServer): void {
    const prefix = `${this.#context.config.basePath}${STREAMS}`
    this.#server.attach(server, { path: (path) => path.startsWith(prefix), http2: true })
  }

  /** Closes all streams with 1001; resolves once their sockets are closed. */
  close(): Promise<void> {
    return this.#server.close({ refusal: refusalOf(draining(), null) })
  }

  async #admit(
    request: UpgradeRequest,
    offer: HandshakeOffer,
  ): Promise<Admission<Reader> | Refusal> {
    const began = performance.now()
    const answered = {
      method: 'GET',
      route: `${STREAMS}{run_id}`,
      requestId: requestIdOf(request),
      runId: null,
      principal: null,
      began,
    }
    try {
      const reader = await this.#open(request)
      const { runId } = reader.subscription
      this.#context.monitor?.answered({ ...answered, runId, status: 101 })
      if (offer.signal.aborted) {
        reader.subscription.close()
        reader.onEnd('closed')
      }
      return { context: reader, headers: { [REQUEST_ID]: answered.requestId } }
    } catch (error) {
      const problem = this.#context.problemFor(error, false)
      if (problem.status === 500 && !isUnusableRun(problem.code))
        this.#report(problem.cause ?? problem, answered.requestId)
      this.#context.monitor?.answered({ ...answered, status: problem.status })
      return refusalOf(problem, answered.requestId)
    }
  }

  async #open(request: UpgradeRequest): Promise<Reader> {
    const { engine, config } = this.#context
    const target = targetOf(request, config.basePath)
    if (target === null || !target.path.startsWith(STREAMS)) {
      const detail = `event streams are at ${config.basePath}${STREAMS}{run_id}`
      throw new ProblemError(404, 'not_found', detail)
    }
    const principal = await this.#identify(request)
    const runId = target.path.slice(STREAMS.length)
    if (!isRunId(runId)) throw unknownRun()
    const query = new URLSearchParams(target.query)
    checkQuery(query, STREAM_PARAMETERS, config.allowedQuery)
    const { kinds, ...range } = readStreamQuery(query)
    const subscribed = engine.subscribe(runId, range, callerFor(principal))
    const subscription = await subscribed.catch((error: unknown) => {
      throw this.#context.problemFor(error, seesAll(config, principal))
    })
    try {
      return { subscription, kinds, onEnd: this.#context.openStream('websocket', runId, principal) }
    } catch (error) {
      subscription.close()
      throw error
    }
  }

  /** Who calls; null without `authorize`. @throws `ProblemError` 401, 403, 429 or 503 */
  async #identify(request: UpgradeRequest): Promise<Principal | null> {
    const { config, limiter, state } = this.#context
    checkCaller(request, config, true)
    if (state === 'closed') throw draining()
    const principal =
      config.authorize === null ? null : authorized(await config.authorize(request))
    // An upgrade is answered at once, so it counts towards the rate only.
    limiter?.admitRequest(accountOf(principal))()
    return principal
  }

  #follow(connection: WebSocketConnection<Reader>): void {
    const { subscription, kinds, onEnd } = connection.context
    connection.onClose = () => subscription.close()
    connection.onMessage = floodGuard(connection)
    pump(subscription, new SocketSink(connection), {
      kinds,
      stuckMs: this.#context.config.streams.stuckMs,
    }).then(
      (end) => {
        onEnd(end)
        if (end !== 'closed') void connection.close(...CLOSE_CODES[end])
      },
      (error: unknown) => {
        if (this.#context.state !== 'open') {
          onEnd('shutdown')
          void connection.close(...CLOSE_CODES.shutdown)
          return
        }
        onEnd('failed')
        void connection.close(1011, 'the log could not be read; reconnect with after=')
        this.#report(error)
      },
    )
  }

  #report(error: unknown, requestId: string | null = null): void {
    const path = `${this.#context.config.basePath}${STREAMS}{run_id}`
    this.#context.report(error, { method: 'GET', path, requestId })
  }
}

/** The HTTP response in place of the 101; `requestId` is null for what is refused by closing. */
function refusalOf(problem: ProblemError, requestId: string | null): Refusal {
  return {
    status: problem.status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...(requestId !== null && { [REQUEST_ID]: requestId }),
      ...problem.headers,
    },
    body: JSON.stringify(problemOf(problem, requestId)),
  }
}

/** A message handler that ignores messages, and closes the connection when there are too many. */
function floodGuard(connection: WebSocketConnection): () => void {
  let second = 0
  let count = 0
  return () => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) [second, count] = [now, 0]
    count += 1
    if (count > MAX_MESSAGES_PER_SECOND)
      void connection.close(1008, 'too many messages; commands go over REST')
  }
}
