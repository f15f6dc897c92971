import type { Coding } from '../../content/decoders.js'
import { sharedChannel, type WorkerChannel } from './worker-channel.js'

/**
 * Undoes one content coding chunk by chunk. The worker does it, because zlib streams are
 * asynchronous and this thread cannot wait for them.
 */
export function* inflateSync(
  source: Iterable<Uint8Array>,
  coding: Coding,
): Generator<Uint8Array, void, undefined> {
  const channel = sharedChannel()
  const id = channel.begin()
  try {
    for (const chunk of source) yield* inflated(channel, id, coding, new Uint8Array(chunk))
    yield* inflated(channel, id, coding, null)
  } finally {
    channel.forget(id)
    if (channel.alive) channel.post({ t: 'close', id })
  }
}

/** The output of one chunk of input; null ends the input. */
function* inflated(
  channel: WorkerChannel,
  id: number,
  coding: Coding,
  chunk: Uint8Array<ArrayBuffer> | null,
): Generator<Uint8Array, void, undefined> {
  let input = chunk
  for (;;) {
    channel.post({ t: 'inflate', id, coding, chunk: input }, input === null ? [] : [input.buffer])
    const { chunks, more } = channel.receiveReply(id, 'inflated')
    yield* chunks
    if (!more) return
    // An empty chunk asks for the rest of the output.
    if (input !== null) input = new Uint8Array(0)
  }
}
