/**
 * The event stream over WebSocket: who may read which run is decided before the 101, as for any
 * other call, and a refusal is an ordinary HTTP answer with problem details.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller, EventKind, RunSubscription, StreamItem } from '../../agent/index.js'
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
import type { ServiceConfig, ServiceEngine } from '../config.js'
import { ProblemError, problemOf, toProblemError, unknownRun } from '../errors.js'
import { pump, type EventSink, type PumpEnd } from './pump.js'
import type { StreamKind } from '../monitoring/log.js'
import type { AnsweredRequest } from '../monitoring/monitor.js'
import { targetOf } from '../messages/request-target.js'
import { isRunId } from '../router.js'
import { readStreamWish } from '../routes/stream-parameters.js'

/** Where the streams are, below the mount. */
const STREAMS = '/api/ws/'

/** Largest message taken from a client, in octets. They are ignored; commands go over REST. */
const MAX_MESSAGE_BYTES = 4_096
/** Messages that a client may send in a second; more is a flood (1008). */
const MAX_MESSAGES_PER_SECOND = 20
/** Pings that may stay unanswered before a peer is given up. */
const PATIENCE = 3

/** Who wants to read. */
export interface StreamCaller {
  readonly caller: Caller
  readonly principal: Principal | null
}

/** What the readers need of the service. */
export interface SocketHost {
  /** Tells who calls, or throws what to answer. */
  callerOf(request: UpgradeRequest): Promise<StreamCaller>
  /** Told what an upgrade was answered with. */
  answered(request: AnsweredRequest): void
  /** Admits a stream, or throws what to answer; the result is told how it ended. */
  openStream(
    kind: StreamKind,
    runId: string,
    principal: Principal | null,
  ): (end: PumpEnd | 'failed') => void
}

/** What was decided about a reader before it connected. */
interface Reader {
  /** Told once how the stream ended. */
  readonly onEnd: (end: PumpEnd | 'failed') => void
  readonly subscription: RunSubscription<StreamItem>
  readonly kinds: ReadonlySet<EventKind> | undefined
}

/** Close code and reason by how a stream ended; `closed` is the reader's own doing. */
const CLOSE_CODES: Readonly<
  Record<Exclude<PumpEnd, 'closed'>, readonly [code: number, reason: string]>
> = {
  run_end: [1000, ''],
  deleted: [4404, 'the run was deleted'],
  shutdown: [1001, 'the service is shutting down; connect again with after='],
  stuck: [1013, 'the reader does not read; connect again with after='],
}

/** One encoded frame for each event, shared by all its readers. */
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
  readonly #engine: ServiceEngine
  readonly #config: ServiceConfig
  readonly #host: SocketHost
  readonly #server: WebSocketServer<Reader>

  constructor(engine: ServiceEngine, config: ServiceConfig, host: SocketHost) {
    this.#engine = engine
    this.#config = config
    this.#host = host
    const { pingMs } = config.streams
    this.#server = new WebSocketServer<Reader>({
      protocols: [STREAM_PROTOCOL],
      // Judged in `callerOf`, by the rules of all other calls.
      origins: 'any',
      maxMessageBytes: MAX_MESSAGE_BYTES,
      keepAlive: { intervalMs: pingMs, timeoutMs: pingMs * PATIENCE },
      authorize: (request, offer) => this.#admit(request, offer),
      onConnection: (connection) => this.#follow(connection),
      onError: (error) => this.#report(error),
    })
  }

  /** How many are connected. */
  get size(): number {
    return this.#server.connections.size
  }

  /** Takes over one upgrade, whatever its path. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.upgrade(request, socket, head).catch((error: unknown) => this.#report(error))
  }

  /** Serves the upgrades of a server that are for event streams, over HTTP/1.1 and HTTP/2. */
  attach(server: AttachableServer): void {
    const prefix = `${this.#config.basePath}${STREAMS}`
    this.#server.attach(server, { path: (path) => path.startsWith(prefix), http2: true })
  }

  /** Says 1001 to all readers and waits until they are gone. */
  close(): Promise<void> {
    return this.#server.close()
  }

  async #admit(
    request: UpgradeRequest,
    offer: HandshakeOffer,
  ): Promise<Admission<Reader> | Refusal> {
    const began = performance.now()
    const answered = {
      method: 'GET',
      route: `${STREAMS}{run_id}`,
      runId: null,
      principal: null,
      began,
    }
    try {
      const reader = await this.#open(request)
      this.#host.answered({ ...answered, runId: reader.subscription.runId, status: 101 })
      if (offer.signal.aborted) {
        reader.subscription.close()
        reader.onEnd('closed')
      }
      return { context: reader }
    } catch (error) {
      const problem = toProblemError(error)
      if (problem.status === 500) this.#report(problem.cause ?? problem)
      this.#host.answered({ ...answered, status: problem.status })
      return {
        status: problem.status,
        headers: {
          'Content-Type': 'application/problem+json',
          'Cache-Control': 'no-store',
          'X-Content-Type-Options': 'nosniff',
          ...problem.headers,
        },
        body: JSON.stringify(problemOf(problem)),
      }
    }
  }

  async #open(request: UpgradeRequest): Promise<Reader> {
    const target = targetOf(request, this.#config.basePath)
    if (target === null || !target.path.startsWith(STREAMS)) {
      throw new ProblemError(
        404,
        'not_found',
        `event streams are at ${this.#config.basePath}${STREAMS}{run_id}`,
      )
    }
    const { caller, principal } = await this.#host.callerOf(request)
    const runId = target.path.slice(STREAMS.length)
    if (!isRunId(runId)) throw unknownRun()
    const { kinds, ...wish } = readStreamWish(new URLSearchParams(target.query))
    const subscription = await this.#engine.subscribe(runId, wish, caller)
    try {
      return { subscription, kinds, onEnd: this.#host.openStream('websocket', runId, principal) }
    } catch (error) {
      subscription.close()
      throw error
    }
  }

  #follow(connection: WebSocketConnection<Reader>): void {
    const { subscription, kinds, onEnd } = connection.context
    connection.onClose = () => subscription.close()
    connection.onMessage = floodGuard(connection)
    pump(subscription, new SocketSink(connection), {
      kinds,
      stuckMs: this.#config.streams.stuckMs,
    }).then(
      (end) => {
        onEnd(end)
        if (end !== 'closed') void connection.close(...CLOSE_CODES[end])
      },
      (error: unknown) => {
        onEnd('failed')
        void connection.close(1011, 'the log could not be read; connect again with after=')
        this.#report(error)
      },
    )
  }

  #report(error: unknown): void {
    this.#config.onError(error, {
      method: 'GET',
      path: `${this.#config.basePath}${STREAMS}{run_id}`,
    })
  }
}

/** Ignores messages, and ends the connection of a client that sends many. */
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
