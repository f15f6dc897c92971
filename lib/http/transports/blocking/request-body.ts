import { BlobChunks, ChunkSequence, isAsyncChunks } from '../../content/body.js'
import { ClientStateError, InvalidBodyError, WorkerError } from '../../errors.js'
import { sharedChannel } from './worker-channel.js'
import { decodeError } from './protocol.js'

/** Octets of a Blob that are read at a time. */
const BLOB_CHUNK = 512 * 1024

/**
 * The chunks of a body for a thread that cannot wait. A Blob can be read by promise only, so the
 * worker reads it.
 *
 * @throws {@link ClientStateError} when the chunks come from the caller's own asynchronous code.
 */
export function blockingChunks(
  source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Iterable<Uint8Array> {
  if (!isAsyncChunks(source)) return source
  if (source instanceof BlobChunks) return blobChunks(source.blob)
  if (source instanceof ChunkSequence) return sequenceChunks(source.sources.map(blockingChunks))
  throw new ClientStateError(
    'the request body is asynchronous, which Client cannot wait for; give bytes, a string, a Blob, an ' +
      'open file or a synchronous iterable, or use AsyncClient',
  )
}

function* sequenceChunks(
  sources: readonly Iterable<Uint8Array>[],
): Generator<Uint8Array, void, undefined> {
  for (const source of sources) yield* source
}

function* blobChunks(blob: Blob): Generator<Uint8Array, void, undefined> {
  const host = sharedChannel()
  const id = host.begin()
  try {
    for (let at = 0; at < blob.size; at += BLOB_CHUNK) {
      post(blob, at)
      const message = host.receive(id, null)
      if (message?.t === 'error') throw decodeError(message.error)
      if (message?.t !== 'data') throw new WorkerError('the worker answered out of turn')
      yield message.chunk
    }
  } finally {
    host.forget(id)
  }

  function post(whole: Blob, start: number): void {
    try {
      host.post({ t: 'blob', id, blob: whole, start, end: start + BLOB_CHUNK })
    } catch (cause) {
      throw new InvalidBodyError(
        'a Blob of openAsBlob() cannot be given to Client; open the file and give its handle instead',
        { cause },
      )
    }
  }
}
