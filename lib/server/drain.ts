import type { RunService } from './service.js'

/** A server of `node:http`, `https` or `http2` on which the service is mounted. */
export interface DrainableServer {
  /** Takes no more connections; calls back when the last one has ended. */
  close(callback?: (error?: Error) => void): unknown
  /** Ends the connections that are left. */
  closeAllConnections?(): void
}

/** Options of {@link drainOnSignal}. */
export interface DrainOptions {
  /** Signals that begin it. @defaultValue SIGTERM and SIGINT */
  readonly signals?: readonly NodeJS.Signals[] | undefined
  /** For live runs to end in, in milliseconds; the rest goes on at the next start. @defaultValue 10000 */
  readonly graceMs?: number | undefined
  /** Told which signal came, before anything is closed. */
  readonly onDrain?: ((signal: NodeJS.Signals) => void) | undefined
  /** Told what went wrong while closing. @defaultValue one line on standard error, exit code 1 */
  readonly onError?: ((error: unknown) => void) | undefined
}

/**
 * Shuts service and servers down in good order when the process is asked to end: no more runs
 * (`/api/health` tells 503 `draining`), live runs get `graceMs`, streams are ended so that their
 * readers come back with their cursors, then the servers close. The process ends by itself when
 * nothing else keeps it; a second signal ends it at once.
 *
 * @returns what takes the signal handlers away again.
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
  const { signals = ['SIGTERM', 'SIGINT'], graceMs, onDrain, onError = printAndFail } = options
  let draining = false
  const drain = (signal: NodeJS.Signals): void => {
    if (draining) process.exit(signal === 'SIGINT' ? 130 : 143)
    draining = true
    onDrain?.(signal)
    service
      .close({ graceMs })
      .catch(onError)
      .finally(() => {
        for (const server of servers) {
          server.close()
          // What is left are idle connections, and those of readers that do not read.
          server.closeAllConnections?.()
        }
      })
  }
  for (const signal of signals) process.on(signal, drain)
  return () => {
    for (const signal of signals) process.off(signal, drain)
  }
}

function printAndFail(error: unknown): void {
  process.stderr.write(`runwright: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
