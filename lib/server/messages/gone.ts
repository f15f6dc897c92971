import type { Http2ServerRequest } from 'node:http2'
import { ProblemError } from '../errors.js'
import type { HttpRequest } from './reply.js'

/** One for all requests of a connection, or of a stream of HTTP/2. */
const signals = new WeakMap<object, AbortSignal>()

/** Aborts when the connection closes, of HTTP/2 the stream; the reply has no reader then. */
export function goneSignal(request: HttpRequest): AbortSignal {
  const source =
    request.httpVersionMajor < 2 ? request.socket : (request as Http2ServerRequest).stream
  const known = signals.get(source)
  if (known !== undefined) return known
  const controller = new AbortController()
  const abort = (): void => controller.abort(gone())
  signals.set(source, controller.signal)
  if (source.destroyed) abort()
  else source.once('close', abort)
  return controller.signal
}

/** Nobody gets it: it is for the log only. */
function gone(): ProblemError {
  return new ProblemError(499, 'client_gone', 'the caller has closed the connection')
}
