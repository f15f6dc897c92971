import type { AsyncByteStream, SyncByteStream } from '../transports/base.js'

/** Gets what passes through a stream. */
export interface Tap {
  add(chunk: Uint8Array): void
  /** Called once: at the end, when the reader stops earlier, or with the error that ended it. */
  end(error?: unknown): void
}

/** A stream with the same chunks as `stream`, which `tap` gets too; synchronous if `stream` is. */
export function tapped(
  stream: SyncByteStream | AsyncByteStream,
  tap: Tap,
): SyncByteStream | AsyncByteStream {
  let ended = false
  const end = (error?: unknown): void => {
    if (ended) return
    ended = true
    tap.end(error)
  }
  return Symbol.iterator in stream
    ? {
        [Symbol.iterator]: () => syncChunks(stream, tap, end),
        close: () => {
          stream.close?.()
          end()
        },
      }
    : {
        [Symbol.asyncIterator]: () => asyncChunks(stream, tap, end),
        close: async () => {
          await stream.close?.()
          end()
        },
      }
}

function* syncChunks(
  stream: SyncByteStream,
  tap: Tap,
  end: (error?: unknown) => void,
): Generator<Uint8Array, void, undefined> {
  try {
    for (const chunk of stream) {
      tap.add(chunk)
      yield chunk
    }
  } catch (error) {
    end(error)
    throw error
  }
  end()
}

async function* asyncChunks(
  stream: AsyncByteStream,
  tap: Tap,
  end: (error?: unknown) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of stream) {
      tap.add(chunk)
      yield chunk
    }
  } catch (error) {
    end(error)
    throw error
  }
  end()
}
