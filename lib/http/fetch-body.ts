import type { BodyContent } from './content/body.js'
import type { BodyOptions } from './request.js'

/** Chunks of a body that is ready are gathered up to this many, and these bytes. */
const MAX_READY_CHUNKS = 256
const MAX_READY_BYTES = 16 * 1024 * 1024

/**
 * The body of a Fetch request, with its length where that is known: Node's Request shows a stream
 * only, so that what it was made from is used where it was given.
 */
export async function requestBody(request: Request, given: unknown): Promise<BodyOptions> {
  if (request.body === null) return {}
  if (given instanceof Blob) return { content: given }
  // The boundary is that of the Content-Type that Request has set.
  if (given instanceof FormData) return { data: given, files: [] }
  const isWhole =
    typeof given === 'string' ||
    given instanceof URLSearchParams ||
    given instanceof ArrayBuffer ||
    ArrayBuffer.isView(given)
  if (isWhole) return { content: await request.arrayBuffer() }
  if (given !== null) return { content: request.body }
  return { content: await readyContent(request.body) }
}

/**
 * The content of a Request that was passed in, of whose source nothing is known. If it is in
 * memory, it is ready within a turn of the event loop and is sent with its length.
 */
async function readyContent(stream: ReadableStream<Uint8Array>): Promise<BodyContent> {
  const reader = stream.getReader()
  const ready: Uint8Array[] = []
  const turn = new Promise<null>((resolve) => setImmediate(resolve, null))
  let next = reader.read()
  for (let bytes = 0; bytes <= MAX_READY_BYTES && ready.length < MAX_READY_CHUNKS; ) {
    const read = await Promise.race([next, turn])
    if (read === null) break
    if (read.done) return Buffer.concat(ready)
    ready.push(read.value)
    bytes += read.value.byteLength
    next = reader.read()
  }
  return remaining(ready, next, reader)
}

async function* remaining(
  ready: readonly Uint8Array[],
  first: ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* ready
    for (let read = await first; !read.done; read = await reader.read()) yield read.value
  } finally {
    await reader.cancel()
  }
}
