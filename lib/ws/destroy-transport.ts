import { constants, type Http2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'

/** Whether `socket` is one stream of an HTTP/2 session (RFC 8441). */
export function isHttp2Stream(socket: Duplex): socket is Duplex & Http2Stream {
  return 'rstCode' in socket
}

/** Ends a transport at once: with CANCEL on an HTTP/2 stream (RFC 8441, section 5). */
export function destroyTransport(socket: Duplex): void {
  if (isHttp2Stream(socket)) socket.close(constants.NGHTTP2_CANCEL)
  socket.destroy()
}
