import {
  LocalProtocolError,
  ReadError,
  ReadTimeoutError,
  RemoteProtocolError,
  WriteError,
  WriteTimeoutError,
} from '../errors.js'

// Failures that HTTP/1.1 and HTTP/2 report in the same words.

/** Informational heads allowed before the final one, so that they cannot delay it for ever. */
export const MAX_INFORMATIONAL = 100

export function tooManyInformational(): RemoteProtocolError {
  return new RemoteProtocolError(
    `the server sent more than ${MAX_INFORMATIONAL} informational (1xx) responses ` +
      'without a final one',
  )
}

/** A request body that is longer or shorter than its Content-Length. */
export function lengthMismatch(sent: number, expected: number): LocalProtocolError {
  return new LocalProtocolError(
    sent > expected
      ? `the request body is longer than its Content-Length of ${expected}`
      : `the request body has ${sent} bytes, but its Content-Length is ${expected}`,
  )
}

export function readTimeout(ms: number): ReadTimeoutError {
  return new ReadTimeoutError(`no byte of the response arrived for ${ms} ms`, ms)
}

export function writeTimeout(ms: number): WriteTimeoutError {
  return new WriteTimeoutError(`the server accepted no byte of the request for ${ms} ms`, ms)
}

/** The socket failed while the request was under way, and the server has not answered. */
export function sendFailed(cause: NodeJS.ErrnoException): WriteError {
  const reason = cause.code ?? cause.message
  return new WriteError(`the connection failed while the request was being sent (${reason})`, {
    cause,
  })
}

/** The socket failed once the request was under way. */
export function connectionFailed(cause: NodeJS.ErrnoException): ReadError {
  const reason = cause.code ?? cause.message
  return new ReadError(`the connection failed before the response was complete (${reason})`, {
    cause,
  })
}

/** The connection was closed, by either side, while an exchange was open. */
export function closedEarly(): RemoteProtocolError {
  return new RemoteProtocolError('the connection was closed before the response was complete')
}
