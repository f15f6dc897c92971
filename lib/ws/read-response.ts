import type { Duplex } from 'node:stream'
import { HandshakeError } from './errors.js'
import { RefusedBody } from './refused-body.js'
import { HeadReader, type ResponseHead } from './response-head.js'

/** Milliseconds to wait for the content of a refusal, behind its head. */
const BODY_WAIT_MS = 1_000

/** A response to an opening handshake. */
export interface OpeningAnswer {
  readonly head: ResponseHead
  /** After a 101, the first bytes of the server's frames; otherwise content. */
  readonly rest: Buffer
}

/**
 * Reads the response to an opening handshake, and the content of a refusal, for at most a second
 * after `onHead` was called. Then the transport is paused, and what follows is still in it.
 *
 * @throws HandshakeError when the transport ends first, or the response is malformed.
 */
export function readResponse(socket: Duplex, onHead: () => void): Promise<OpeningAnswer> {
  return new Promise((resolve, reject) => {
    const reader = new HeadReader()
    let head: ResponseHead | null = null
    let body: RefusedBody | null = null
    let timer: NodeJS.Timeout | undefined

    const settle = (): void => {
      clearTimeout(timer)
      socket.off('data', onData)
      socket.off('end', onEnd)
      socket.off('error', onError)
      socket.off('close', onEnd)
      socket.pause()
    }
    const finish = (rest: Buffer): void => {
      settle()
      resolve({ head: head!, rest })
    }
    const fail = (error: unknown): void => {
      settle()
      reject(error as Error)
    }
    const takeHead = (chunk: Buffer): void => {
      head = reader.push(chunk)
      if (head === null) return
      onHead()
      if (head.status === 101) return finish(reader.rest())
      body = new RefusedBody(head)
      if (body.push(reader.rest())) return finish(body.take())
      timer = setTimeout(onEnd, BODY_WAIT_MS)
    }
    const onData = (chunk: Buffer): void => {
      try {
        if (body === null) takeHead(chunk)
        else if (body.push(chunk)) finish(body.take())
      } catch (error) {
        fail(error)
      }
    }
    const onEnd = (): void => {
      if (body !== null) finish(body.take())
      else fail(new HandshakeError('the server closed the connection before its response'))
    }
    const onError = (cause: Error): void => {
      if (body !== null) return finish(body.take())
      const text = `the connection was lost before the response: ${cause.message}`
      fail(new HandshakeError(text, { cause }))
    }
    socket.on('data', onData)
    socket.on('end', onEnd)
    socket.on('error', onError)
    socket.on('close', onEnd)
    socket.resume()
    if (socket.destroyed) onEnd()
  })
}
