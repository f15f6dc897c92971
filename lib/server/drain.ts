import { callHost } from '../internal/web.js'
import { describeError } from '../internal/errors.js'
import { escapeInvisible } from '../internal/text.js'
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import type { RunService } from './service.js'

/** A server of `node:http`, `https` or `http2` that the service is mounted on. */
export interface DrainableServer {
  /** Stops accepting connections; calls back when the last one has ended. */
  close(callback?: (error?: Error) => void): unknown
  /** Closes what `close` leaves open: idle connections, and readers that do not read. */
  closeAllConnections?(): void
}

/** Options of {@link drainOnSignal}. */
export interface DrainOptions {
  /** Signals that start draining. @defaultValue SIGTERM and SIGINT */
  readonly signals?: readonly NodeJS.Signals[] | undefined
  /** Milliseconds for live runs to end; the rest resumes at the next start. @defaultValue 10000 */
  readonly graceMs?: number | undefined
  /** Called with the signal before anything is closed. */
  readonly onDrain?: ((signal: NodeJS.Signals) => void) | undefined
  /**
   * Called when the service and all servers are closed, for what the host owns and what would keep
   * the process alive, for example `() => pool.end()`.
   */
  readonly onClosed?: (() => unknown) | undefined
  /** Called when closing fails. @defaultValue one line on standard error, exit code 1 */
  readonly onError?: ((error: unknown) => void) | undefined
}

const OPTIONS: OptionKinds<DrainOptions> = {
  signals: 'array', graceMs: 'number', onDrain: 'function', onClosed: 'function',
  onError: 'function',
}

/**
 * Shuts service and servers down cleanly on a signal: no more runs are started (`/api/health`
 * answers 503 `draining`), live runs get `graceMs`, streams end so that their readers reconnect
 * with their cursors, then the servers close, then `onClosed` is called. The process exits when
 * nothing else keeps it alive; a second signal ends it at once.
 *
 * @returns a function that removes the signal handlers.
 * @example
 * ```ts
 * const server = createServer(service.handler)
 * service.attach(server)
 * server.listen(8000)
 * drainOnSignal(service, [server], { graceMs: 20_000 })
 * ```
 */
export function drainOnSignal(
  service: Pick<RunService, 'close'>,
  servers: readonly DrainableServer[],
  options: DrainOptions = {},
): () => void {
  checkOptions(options, OPTIONS, 'drainOnSignal()')
  if (typeof service?.close !== 'function' || !Array.isArray(servers)) {
    throw new TypeError('drainOnSignal() needs the service and an array of servers')
  }
  for (const server of servers as readonly unknown[]) {
    if (typeof (server as DrainableServer | null)?.close === 'function') continue
    const got = describeValue(server)
    throw new TypeError(`drainOnSignal() needs servers that listen, got ${got} in their list`)
  }
  const { signals = ['SIGTERM', 'SIGINT'], graceMs, onDrain, onClosed } = options
  const { onError = printAndFail } = options
  let draining = false
  const drain = (signal: NodeJS.Signals): void => {
    if (draining) process.exit(signal === 'SIGINT' ? 130 : 143)
    draining = true
    callHost(() => onDrain?.(signal), onError)
    service
      .close({ graceMs })
      .catch(onError)
      .finally(() => Promise.all(servers.map(closeServer)))
      .then(() => onClosed?.())
      .catch(onError)
  }
  for (const signal of signals) process.on(signal, drain)
  return () => {
    for (const signal of signals) process.off(signal, drain)
  }
}

/** Resolves when the last connection has ended; at once for a server that is not listening. */
async function closeServer(server: DrainableServer): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  // What remains are idle connections, and readers that do not read.
  server.closeAllConnections?.()
  await closed
}

function printAndFail(error: unknown): void {
  const message = describeError(error)
  process.stderr.write(escapeInvisible(`runwright: ${message}\n`))
  process.exitCode = 1
}
