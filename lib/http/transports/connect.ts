import { connect as connectTcp, isIP } from 'node:net'
import type { LookupFunction, Socket, TcpNetConnectOpts } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ConnectError, ConnectTimeoutError, RequestError } from '../errors.js'
import { Timer, timerWheel } from '../timer-wheel.js'

/** The peer of a connection, and the local end. */
export interface DialOptions {
  readonly host: string
  readonly port: number
  /** Path of a unix socket; replaces host and port. */
  readonly socketPath?: string | null
  readonly localAddress?: string | null
  /** Resolves names; null for that of the system. */
  readonly lookup?: LookupFunction | null
}

/** Limits of opening a connection or waiting for one; null for none. */
export interface WaitLimits {
  readonly timeoutMs: number | null
  readonly signal: AbortSignal | null
}

/** Both ends of a connected socket, for `extensions` of a response. */
export function addressesOf(socket: Socket): Readonly<Record<string, unknown>> {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  return { remoteAddress, remotePort, localAddress, localPort }
}

/** The peer as error messages name it. */
export function addressText(options: DialOptions): string {
  if (typeof options.socketPath === 'string') return options.socketPath
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  return `${host}:${options.port}`
}

/**
 * Runs the steps of opening a connection under one timeout and one signal. `steps` passes each
 * socket through `track`, so that it is destroyed when either ends the wait.
 *
 * @throws {@link ConnectTimeoutError} when the timeout passes first.
 */
export function connectWithin<T>(
  limits: WaitLimits,
  what: string,
  steps: (track: <S extends Socket>(socket: S) => S) => Promise<T>,
): Promise<T> {
  const { timeoutMs, signal } = limits
  return new Promise((resolve, reject) => {
    const sockets = new Set<Socket>()
    let over = false
    const settle = (): boolean => {
      if (over) return false
      over = true
      timer.clear()
      signal?.removeEventListener('abort', onAbort)
      return true
    }
    const giveUp = (reason: unknown): void => {
      if (!settle()) return
      for (const socket of sockets) socket.destroy()
      reject(reason as Error)
    }
    const onAbort = (): void => giveUp(signal!.reason)
    const onTimeout = (ms: number): void => {
      giveUp(new ConnectTimeoutError(`no connection to ${what} within ${ms} ms`, ms))
    }
    const timer = new Timer(onTimeout, { keepsAlive: true })
    timer.start(timeoutMs)
    if (signal?.aborted === true) {
      giveUp(signal.reason)
      return
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    const track = <S extends Socket>(socket: S): S => {
      sockets.add(socket)
      if (over) socket.destroy()
      return socket
    }
    steps(track).then(
      (value) => void (settle() && resolve(value)),
      (error: unknown) => giveUp(error),
    )
  })
}

/**
 * Connects by TCP or to a unix socket; `onLookup` is called once a name is resolved.
 *
 * @throws {@link ConnectError}
 */
export function openTcp(
  options: DialOptions,
  timeoutMs: number | null,
  track: <S extends Socket>(socket: S) => S,
  onLookup: () => void,
): Promise<Socket> {
  const socket =
    typeof options.socketPath === 'string'
      ? connectTcp({ path: options.socketPath })
      : connectTcp(tcpOptions(options, timeoutMs))
  track(socket).once('lookup', onLookup)
  return whenReady(socket, 'connect', addressText(options))
}

/** Secures an open socket. @throws {@link ConnectError} */
export function openTls(
  socket: Socket,
  tls: Readonly<Record<string, unknown>>,
  what: string,
  track: <S extends Socket>(socket: S) => S,
): Promise<TLSSocket> {
  let secure: TLSSocket
  try {
    secure = process.getBuiltinModule('node:tls').connect({ ...tls, socket })
    if (typeof tls['onKeyLog'] === 'function') secure.on('keylog', tls['onKeyLog'] as () => void)
  } catch (cause) {
    socket.destroy()
    return Promise.reject(connectError(what, cause))
  }
  return whenReady(track(secure), 'secureConnect', what)
}

function tcpOptions(options: DialOptions, timeoutMs: number | null): TcpNetConnectOpts {
  const { localAddress, lookup } = options
  return {
    host: options.host,
    port: options.port,
    noDelay: true,
    ...(typeof localAddress === 'string' ? { localAddress, family: isIP(localAddress) } : {}),
    ...(typeof lookup === 'function' ? { lookup } : {}),
    ...(isIP(options.host) === 0
      ? { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: attemptTimeout(timeoutMs) }
      : {}),
  }
}

/** How long each address of a name is tried: Node's 250 ms is too short for slow links. */
function attemptTimeout(timeoutMs: number | null): number {
  return Math.round(Math.max(250, Math.min(2_500, (timeoutMs ?? 10_000) / 2)))
}

function whenReady<S extends Socket>(socket: S, event: string, what: string): Promise<S> {
  return new Promise((resolve, reject) => {
    const onReady = (): void => {
      timerWheel.arrivals++
      socket.removeListener('error', onError)
      socket.removeListener('close', onClose)
      // Until the connection adds its own listener, an error must not end the process.
      socket.on('error', () => {})
      resolve(socket)
    }
    const onError = (cause: Error): void => {
      socket.removeListener(event, onReady)
      socket.on('error', () => {})
      socket.destroy()
      reject(connectError(what, cause))
    }
    const onClose = (): void => onError(new Error('the peer closed the connection'))
    socket.once(event, onReady)
    socket.once('error', onError)
    socket.once('close', onClose)
  })
}

/** Names the reason for each address that was tried: an AggregateError has no message itself. */
export function connectError(what: string, cause: unknown): Error {
  if (cause instanceof RequestError) return cause
  const errors = cause instanceof AggregateError ? (cause.errors as Error[]) : [cause as Error]
  const reasons = errors.map((error) => {
    const { code, syscall } = error as NodeJS.ErrnoException
    const message = syscall === 'bind' ? `localAddress: ${error.message}` : error.message
    return code !== undefined && !message.includes(code) ? `${code}: ${message}` : message
  })
  return new ConnectError(`cannot connect to ${what}: ${[...new Set(reasons)].join('; ')}`, {
    cause,
  })
}
