import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { asError } from '../internal/errors.js'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import {
  CLIENT_SETTINGS,
  checkOffer,
  resolveClientConfig,
  type WebSocketClientConfig,
  type WebSocketClientSettings,
} from './client-config.js'
import {
  checkResponse,
  type ClientOffer,
  extraFields,
  type ExtraFields,
  refusedBy,
  requestHead,
} from './client-handshake.js'
import { basicAuthorization, parseTarget, shownUrl, targetOf } from './client-target.js'
import type { ConnectionOwner } from './connection-owner.js'
import { openConnection, startReading, type WebSocketConnection } from './connection.js'
import { newCounters, type TrafficCounters } from './counters.js'
import { Deflater } from './deflate.js'
import {
  type ConnectFunction,
  dial,
  type DialOptions,
  TLS,
  type WebSocketTlsOptions,
} from './dial.js'
import { HandshakeError } from './errors.js'
import { KeepAliveTimer } from './keep-alive.js'
import { Opening } from './opening.js'
import { readResponse } from './read-response.js'
import { ReceiverPool } from './receiver-pool.js'
import { packSent } from './request-copy.js'
import { headersOf } from './response-head.js'

/** Options of a {@link WebSocketClient}. */
export interface WebSocketClientOptions extends WebSocketClientSettings {
  /**
   * Further header fields of each opening handshake, such as Authorization, Cookie or Origin, which
   * is not sent by default. Those of the handshake itself are refused.
   */
  readonly headers?: OutgoingHttpHeaders | undefined
  /**
   * For `wss:`: certificates, keys and checks, as `tls.connect()` takes them. By default the
   * certificate is verified against the authorities that Node trusts.
   */
  readonly tls?: WebSocketTlsOptions | undefined
  /**
   * Opens the transport, for a proxy, a unix socket or a local address; TLS is added to it for
   * `wss:`. `proxyConnect()` of `runwright/http` makes one. Default: a TCP connection.
   */
  readonly connect?: ConnectFunction | undefined
  /** Called with what handlers on the connections throw. Default: a process warning. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** Options of one `connect()`. */
export interface WebSocketConnectOptions {
  /** Replaces the subprotocols of the client. */
  readonly protocols?: readonly string[] | undefined
  /** Added to the header fields of the client, which they replace by name. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** Ends the opening; an open connection is not affected. */
  readonly signal?: AbortSignal | undefined
}

/** What a server sent with its 101: the `context` of a client's connection. */
export interface OpeningResponse {
  /** By name in lower case, as `node:http` has them. */
  readonly headers: IncomingHttpHeaders
}

const OPTIONS: OptionKinds<WebSocketClientOptions> = {
  ...CLIENT_SETTINGS, headers: 'object', tls: 'object', connect: 'function', onError: 'function',
}
const CONNECT: OptionKinds<WebSocketConnectOptions> = {
  protocols: 'array', headers: 'object', signal: 'object',
}

/**
 * Opens WebSockets to servers (RFC 6455, section 4.1), with the same connections and limits as a
 * {@link WebSocketServer} has. It holds no resource besides its connections.
 *
 * @example
 * ```ts
 * const client = new WebSocketClient({ protocols: ['v1'] })
 * await using connection = await client.connect('wss://example.com/feed')
 * connection.send('hello')
 * for await (const message of connection) console.log(message)
 * ```
 */
export class WebSocketClient {
  /** All settings, with defaults filled in. */
  readonly config: WebSocketClientConfig
  /** What its connections have done so far, for metrics. The numbers are live. */
  readonly counters: Readonly<TrafficCounters>
  readonly #counters: TrafficCounters = newCounters()
  readonly #headers: OutgoingHttpHeaders
  readonly #dialing: DialOptions
  readonly #connections: Set<WebSocketConnection<OpeningResponse>> = new Set()
  readonly #owner: ConnectionOwner<WebSocketConnection>
  readonly #keepAlive: KeepAliveTimer | null

  /** @throws TypeError for an invalid option. */
  constructor(options: WebSocketClientOptions = {}) {
    checkOptions(options, OPTIONS, 'new WebSocketClient()')
    const { headers = {}, tls = {}, connect, onError, ...settings } = options
    checkOptions(tls, TLS, 'tls')
    extraFields(headers)
    this.config = resolveClientConfig(settings)
    this.counters = this.#counters
    this.#headers = { ...headers }
    this.#dialing = { connect, tls: { ...tls } }
    const { keepAlive } = this.config
    this.#keepAlive = keepAlive === null ? null : new KeepAliveTimer(keepAlive, this.#connections)
    this.#owner = {
      role: 'client',
      config: this.config,
      counters: this.#counters,
      receivers: new ReceiverPool(this.config, 'client'),
      onClosed: (connection) => {
        this.#connections.delete(connection as WebSocketConnection<OpeningResponse>)
      },
      onHandlerError: (error) => {
        if (onError !== undefined) onError(error)
        else process.emitWarning(asError(error))
      },
    }
  }

  /** The connections that are not closed, including those in a closing handshake. */
  get connections(): ReadonlySet<WebSocketConnection<OpeningResponse>> {
    return this.#connections
  }

  /**
   * Opens a connection. Messages that arrive before the program reads are queued. Redirects are not
   * followed.
   *
   * @param url - `ws:` or `wss:`, or `http:` or `https:` for the same; without a fragment. A user
   *   name and password are sent as Basic credentials, unless `headers` has Authorization.
   * @throws {@link ConnectError}, {@link HandshakeError}, {@link HandshakeRefusedError} for another
   *   status than 101, {@link OpeningTimeoutError}; `signal.reason` when the signal aborts; a
   *   TypeError for an invalid URL or option. No transport is left open.
   */
  async connect(
    url: string | URL,
    options: WebSocketConnectOptions = {},
  ): Promise<WebSocketConnection<OpeningResponse>> {
    checkOptions(options, CONNECT, 'connect()')
    const target = parseTarget(url)
    const extra = this.#fieldsFor(target, options.headers ?? {})
    const offer: ClientOffer = {
      key: randomBytes(16).toString('base64'),
      protocols: checkOffer(options.protocols ?? this.config.protocols),
      deflate: this.config.deflate,
    }
    const opening = new Opening(options.signal)
    return await opening.run(() => this.#open(target, offer, extra, opening))
  }

  #fieldsFor(url: URL, headers: OutgoingHttpHeaders): ExtraFields {
    const authorization = basicAuthorization(url)
    const fromUrl = authorization === null ? {} : { Authorization: authorization }
    return extraFields(fromUrl, this.#headers, headers)
  }

  async #open(
    url: URL,
    offer: ClientOffer,
    extra: ExtraFields,
    opening: Opening,
  ): Promise<WebSocketConnection<OpeningResponse>> {
    const { connectTimeoutMs, handshakeTimeoutMs, deflate } = this.config
    const shown = shownUrl(url)
    opening.deadline(connectTimeoutMs, `no connection for ${shown}`)
    const socket = await dial(targetOf(url), this.#dialing, opening)
    tune(socket)
    opening.deadline(handshakeTimeoutMs, `no response from ${shown}`)
    const sent = requestHead(url, offer, extra)
    socket.write(sent, 'latin1')
    const { head, rest } = await readResponse(socket, () => opening.endDeadline())
    if (head.status !== 101) throw refusedBy(head, rest, url)
    const agreed = checkResponse(head, offer)
    if (socket.destroyed) throw new HandshakeError('the connection was lost behind the 101')
    opening.signal.throwIfAborted()
    const connection = openConnection<OpeningResponse, unknown>(this.#owner, {
      socket,
      request: packSent(sent),
      context: { headers: headersOf(head) },
      protocol: agreed.protocol,
      deflater: agreed.deflate === null ? null : new Deflater(agreed.deflate, deflate!),
    })
    this.#connections.add(connection)
    this.#keepAlive?.start()
    // A caller that awaits this must run before the first message is delivered.
    queueMicrotask(() => process.nextTick(startReading, connection, rest))
    return connection
  }
}

/** No delay between small frames, and no idle timeout of the program's own. */
function tune(socket: Duplex): void {
  const tcp = socket as Partial<Pick<Socket, 'setNoDelay' | 'setTimeout'>>
  tcp.setNoDelay?.(true)
  tcp.setTimeout?.(0)
}
