import type { Socket } from 'node:net'

type Callback = (error?: Error | null) => void

/** What a write fails with once the peer has closed the connection. */
const CLOSED_BY_PEER = new Set(['EPIPE', 'ECONNRESET', 'ECONNABORTED'])

/**
 * Keeps `socket` open when a write fails because the peer has closed the connection, so that what
 * it sent before can be read: a server may answer and close before it has read the whole request.
 * By itself a socket is destroyed at once, with the bytes that the kernel has for it. Such a write
 * never ends; reading leads to the end of the stream, or to an error.
 */
export function outliveWriteFailures(
  socket: Socket,
  onFailure: (error: NodeJS.ErrnoException) => void,
): void {
  const write = socket._write.bind(socket)
  const writev = socket._writev?.bind(socket)
  // A stream has at most one write in progress.
  let callback: Callback
  const written = (error?: NodeJS.ErrnoException | null): void => {
    if (error == null || !CLOSED_BY_PEER.has(error.code ?? '')) callback(error)
    else if (!socket.destroyed) onFailure(error)
  }
  socket._write = (chunk, encoding, done) => {
    // The `_writev` of some runtimes calls `_write`, with the callback that it was given.
    if (done !== written) callback = done
    write(chunk, encoding, written)
  }
  if (writev === undefined) return
  socket._writev = (chunks, done) => {
    callback = done
    writev(chunks, written)
  }
}
