/**
 * `AsyncClient.fetch`: a client by the Fetch Standard (https://fetch.spec.whatwg.org). Node's own
 * Request reads the arguments and its Response holds the result; the client sends.
 *
 * @module
 */
import type { AsyncResponse } from './async-response.js'
import { DEFAULT_TIMEOUTS } from './config.js'
import type { BodyContent } from './content/body.js'
import type { FetchCall, FetchClient } from './fetch-call.js'
import type { ClientSettings } from './options.js'
import type { BodyOptions } from './request.js'

const REDIRECTS = [301, 302, 303, 307, 308]
/** Statuses without a body (Fetch Standard, section 2.2.3). */
const NULL_BODY = [101, 103, 204, 205, 304]

/** Closes responses that the program dropped unread, which hold connections. */
const dropped = new FinalizationRegistry<AsyncResponse>((response) => void response.close())

/**
 * Sends the request of `call`.
 *
 * @throws TypeError with the failure as its cause; `signal.reason` if the signal aborts.
 * @internal
 */
export async function fetchWith(
  client: FetchClient,
  settings: ClientSettings,
  call: FetchCall,
): Promise<globalThis.Response> {
  const { request, signal } = call
  try {
    if (signal?.aborted === true) void request.body?.cancel(signal.reason).catch(() => {})
    signal?.throwIfAborted()
    const response = await exchange(client, settings, call)
    if (request.redirect === 'error' && REDIRECTS.includes(response.statusCode)) {
      await response.close()
      throw new Error(`unexpected redirect with status ${response.statusCode}`)
    }
    return await standardResponse(response, call)
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason
    throw new TypeError('fetch failed', { cause })
  }
}

async function exchange(
  client: FetchClient,
  settings: ClientSettings,
  { request, body, signal }: FetchCall,
): Promise<AsyncResponse> {
  const omit = request.credentials === 'omit'
  // The limits for reading and writing are none of the standard's: they count if they were set.
  const unlimited = settings.timeouts === DEFAULT_TIMEOUTS
  const built = client.buildRequest(request.method, request.url, {
    headers: [...request.headers],
    signal,
    ...(await requestBody(request, body)),
    ...(omit ? { cookies: null } : {}),
    ...(unlimited ? { timeout: { read: null, write: null, pool: null } } : {}),
  })
  built.standardRedirects = true
  return await client.send(built, {
    stream: true,
    followRedirects: request.redirect === 'follow',
    raiseForStatus: false,
    ...(omit ? { auth: null } : {}),
  })
}

async function standardResponse(
  response: AsyncResponse,
  call: FetchCall,
): Promise<globalThis.Response> {
  const { statusCode, reasonPhrase, httpVersion } = response
  const bodiless = call.request.method === 'HEAD' || NULL_BODY.includes(statusCode)
  if (bodiless) await response.close()
  const headers = new globalThis.Headers()
  for (const [name, value] of response.headers.raw) headers.append(name, value)
  const isUsual = statusCode >= 200 && statusCode <= 599
  const made = new globalThis.Response(bodiless ? null : bodyStream(response, call), {
    status: isUsual ? statusCode : 200,
    // HTTP/2 has no phrases.
    statusText: httpVersion === 'HTTP/2' ? '' : reasonPhrase,
    headers,
  })
  const url = new URL(response.url)
  url.hash = ''
  return withFacts(made, {
    url: url.href,
    redirected: response.history.length > 0,
    type: 'basic',
    ...(isUsual ? {} : { status: statusCode, ok: false }),
  })
}

/** Sets what the constructor of Response cannot, on clones too. */
function withFacts(
  made: globalThis.Response,
  facts: Readonly<Record<string, unknown>>,
): globalThis.Response {
  const clone = made.clone.bind(made)
  for (const [name, value] of Object.entries(facts)) Object.defineProperty(made, name, { value })
  Object.defineProperty(made, 'clone', { value: () => withFacts(clone(), facts) })
  return made
}

/** The content as a byte stream that reads when it is read. */
function bodyStream(response: AsyncResponse, call: FetchCall): ReadableStream<Uint8Array> {
  const chunks = response.iterBytes()
  const stream = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        const next = await chunks.next()
        // The stream takes the buffer away, in which there may be more than this chunk.
        if (next.done !== true) return controller.enqueue(new Uint8Array(next.value))
        controller.close()
        controller.byobRequest?.respond(0)
      } catch (cause) {
        // `call` also keeps the request, and with it the signal that it follows, alive.
        const { signal } = call
        controller.error(signal?.aborted === true ? signal.reason : terminated(cause))
      }
    },
    async cancel() {
      await response.close()
      await chunks.return().catch(() => {})
    },
  })
  dropped.register(stream, response)
  return stream
}

function terminated(cause: unknown): TypeError {
  return new TypeError('terminated', { cause })
}

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
