import { isAsyncChunks, type Body } from '../content/body.js'

const DEFAULT_SLICE_BYTES = 512 * 1024

/** Yields the chunks of a request body, by promise where its source is asynchronous. */
export type Upload = Iterator<Uint8Array> | AsyncIterator<Uint8Array>

/** Chunks that an upload sends in one turn of the event loop. */
const CHUNKS_PER_TURN = 64

/**
 * Lets the event loop turn after every 64th call. A source whose chunks are always ready, and a
 * server that takes them at once, would keep an upload among its own promises otherwise: no answer,
 * no deadline and no other call would be seen before its end.
 */
export class Turns {
  #chunks = 0

  /** Null when it is not yet time for a turn. */
  next(): Promise<void> | null {
    if (++this.#chunks % CHUNKS_PER_TURN !== 0) return null
    return new Promise((resolve) => setImmediate(resolve))
  }
}

/**
 * Opens a body for sending. One that is held in memory is sent in slices, so that the write
 * timeout measures progress and not the whole body.
 */
export function openUpload(body: Body, sliceBytes: number = DEFAULT_SLICE_BYTES): Upload {
  const source = body.bytes === null ? body.open() : slices(body.bytes, sliceBytes)
  return isAsyncChunks(source) ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
}

function* slices(bytes: Uint8Array, size: number): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
