import { BlobChunks, ChunkSequence, isAsyncChunks } from '../../content/body.js'
import { ClientStateError, InvalidBodyError } from '../../errors.js'
import { sharedChannel } from './worker-channel.js'

const BLOB_CHUNK_BYTES = 512 * 1024

/**
 * The chunks of a body for a thread that cannot await promises. A Blob has no synchronous access,
 * so the worker reads it.
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
    'the request body is asynchronous, which Client cannot wait for; pass bytes, a string, a ' +
      'Blob, an open file or a synchronous iterable, or use AsyncClient',
  )
}

function* sequenceChunks(
  sources: readonly Iterable<Uint8Array>[],
): Generator<Uint8Array, void, undefined> {
  for (const source of sources) yield* source
}

function* blobChunks(blob: Blob): Generator<Uint8Array, void, undefined> {
  const channel = sharedChannel()
  const id = channel.begin()
  try {
    for (let start = 0; start < blob.size; start += BLOB_CHUNK_BYTES) {
      try {
        channel.post({ t: 'blob', id, blob, start, end: start + BLOB_CHUNK_BYTES })
      } catch (cause) {
        throw new InvalidBodyError(
          'Client cannot read a Blob of openAsBlob(); open the file and pass its handle instead',
          { cause },
        )
      }
      yield channel.receiveReply(id, 'data').chunk
    }
  } finally {
    channel.forget(id)
  }
}
