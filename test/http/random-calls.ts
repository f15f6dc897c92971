import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import {
  AsyncClient,
  type AsyncClientOptions,
  type AsyncResponse,
  HttpTransport,
  type Request,
  type RequestOptions,
} from 'runwright/http'
import type { Random } from '../helpers/random.js'
import { listen } from '../helpers/serve.js'

/** How the server answers one request: the bytes in pieces, and whether it then closes. */
interface Answer {
  readonly pieces: readonly Buffer[]
  readonly closes: boolean
}

/** One call: what the client does, and what the server answers to each of its requests. */
interface PlannedCall {
  readonly method: string
  readonly url: string | URL
  readonly options: () => RequestOptions
  readonly reading: 'whole' | 'stream' | 'close'
  readonly abort: 'never' | 'before' | 'same turn'
}

/** What two clients are to do alike. */
export interface Plan {
  readonly client: AsyncClientOptions
  readonly calls: readonly PlannedCall[]
  /** By path; the last answer is given to all requests that follow. */
  readonly answers: ReadonlyMap<string, readonly Answer[]>
}

const STATUSES = [200, 200, 200, 200, 201, 203, 206, 304, 204, 400, 404, 418, 500, 503, 599]
const REDIRECTS = [301, 302, 303, 307, 308]
const FIELDS = [
  'Content-Type: application/json',
  'Content-Type: application/json; charset=utf-8',
  'Content-Type: text/plain; charset=latin1',
  'Set-Cookie: a=1; Path=/',
  'Set-Cookie: b=2; Secure',
  'X-Many: 1\r\nX-Many: 2',
  'X-Blank:  \t x \t ',
  'X-Utf8: gr\xc3\xbc\xc3\x9fe',
  'Keep-Alive: timeout=60',
  'Connection: keep-alive',
  'Location: relative',
  'Cache-Control: no-store',
]
const MALFORMED = [
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nx',
  'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
  'HTTP/1.1 200 OK\r\nA : b\r\n\r\n',
  'HTTP/1.1 2000 OK\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  'SSH-2.0-x\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
  `HTTP/1.1 200 OK\r\nContent-Encoding: br${', br'.repeat(5)}\r\nContent-Length: 2\r\n\r\nab`,
  `HTTP/1.1 200 OK\r\nContent-Encoding: br${', br'.repeat(5)}\r\nContent-Length: 3\r\n\r\nab`,
]

/** A plan that depends on nothing but `random`. */
export function randomPlan(random: Random, origin: string): Plan {
  const answers = new Map<string, Answer[]>()
  const calls: PlannedCall[] = []
  for (let n = random.integer(3, 6); n > 0; n--) calls.push(randomCall(random, origin, n, answers))
  const client: AsyncClientOptions = {
    baseUrl: `${origin}/base`,
    trustEnv: false,
    followRedirects: random.chance(0.5),
    ...(random.chance(0.2) ? { maxRedirects: random.integer(0, 1) } : {}),
    ...(random.chance(0.2) ? { maxResponseBytes: random.integer(0, 2000) } : {}),
    ...(random.chance(0.2) ? { cookies: { own: 'x' } } : {}),
    ...(random.chance(0.2) ? { headers: { 'X-Client': 'y', Accept: 'a/b' } } : {}),
    ...(random.chance(0.1) ? { params: { common: 1 } } : {}),
    ...(random.chance(0.1) ? { sensitiveHeaders: ['x-many'] } : {}),
    ...(random.chance(0.1) ? { raiseForStatus: true } : {}),
    ...(random.chance(0.1) ? { auth: ['user', 'password'] as const } : {}),
  }
  return { client, calls, answers }
}

function randomCall(
  random: Random,
  origin: string,
  n: number,
  answers: Map<string, Answer[]>,
): PlannedCall {
  const method = random.pick(['GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
  const relative = random.chance(0.5)
  const path = relative ? `/base/${n}` : `/${n}`
  const url = relative ? `${n}` : `${origin}/${n}`
  answers.set(path, randomAnswers(random, method))
  answers.set(path.replace(/[^/]*$/, 'relative'), [plainAnswer('elsewhere')])
  const options = randomOptions(random)
  return {
    method,
    url: !relative && random.chance(0.2) ? new URL(url) : url,
    options,
    reading: random.pick(['whole', 'whole', 'whole', 'stream', 'close']),
    abort: random.pick([...Array<'never'>(18).fill('never'), 'before', 'same turn']),
  }
}

function randomOptions(random: Random): () => RequestOptions {
  const some = <T extends object>(chance: number, options: T): T | object =>
    random.chance(chance) ? options : {}
  const body = random.pick<() => RequestOptions>([
    () => ({ json: { name: 'nut', n: [1, 2] } }),
    () => ({ content: 'x'.repeat(3000) }),
    () => ({ content: ['ab', 'cd'].values() }),
    () => ({ data: { a: 1 } }),
  ])
  const hasBody = random.chance(0.2)
  const rest = {
    ...some(0.2, { headers: { 'X-Call': 'z', Accept: null } }),
    ...some(0.1, { params: { q: ['1', '2'] } }),
    ...some(0.1, { cookies: { mine: 'm' } }),
    ...some(0.05, { cookies: null }),
    ...some(0.05, { headers: { Connection: 'close' } }),
    ...some(0.1, { timeout: 60_000 }),
    ...some(0.1, { timeout: { total: 60_000 } }),
    ...some(0.1, { followRedirects: true }),
    ...some(0.05, { raiseForStatus: true }),
    ...some(0.05, { retry: { retries: 1, backoffMs: 0 } as never }),
    ...some(0.05, { auth: null }),
    ...some(0.03, { extensions: { target: '/base/1?own' } }),
    ...some(0.03, { extensions: { sniHostname: '' } }),
    ...some(0.03, { headers: { 'bad name': 'x' } }),
  }
  return () => ({ ...rest, ...(hasBody ? body() : {}) })
}

/** The answers to the requests of one URL: of two, the first may be a connection that closes. */
function randomAnswers(random: Random, method: string): Answer[] {
  const last = random.chance(0.15)
    ? { pieces: [Buffer.from(random.pick(MALFORMED), 'latin1')], closes: false }
    : randomAnswer(random, method)
  return random.chance(0.15) ? [{ pieces: [], closes: true }, last] : [last]
}

function plainAnswer(text: string): Answer {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n`
  return { pieces: [Buffer.from(head + text)], closes: false }
}

function randomAnswer(random: Random, method: string): Answer {
  const status = random.chance(0.2) ? random.pick(REDIRECTS) : random.pick(STATUSES)
  const fields = [random.pick(FIELDS), random.pick(FIELDS)]
  if (REDIRECTS.includes(status) && random.chance(0.8)) fields.push('Location: relative')
  let content: Buffer = randomContent(random)
  if (random.chance(0.2)) {
    content = gzipSync(content)
    fields.push('Content-Encoding: gzip')
  }
  const bodiless = method === 'HEAD' || status === 204 || status === 304
  const framing = bodiless ? 'none' : random.pick(['length', 'length', 'chunked', 'close'])
  if (framing === 'length') fields.push(`Content-Length: ${content.length}`)
  if (framing === 'chunked') fields.push('Transfer-Encoding: chunked')
  const version = framing !== 'chunked' && random.chance(0.1) ? 'HTTP/1.0' : 'HTTP/1.1'
  // A server that keeps a connection alive and then closes it races with the next request.
  if (version === 'HTTP/1.0') fields.push('Connection: close')
  const information = random.chance(0.1) ? 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' : ''
  const phrase = random.pick([' OK', ' ', '', ' Not \xfcsual'])
  const head = `${information}${version} ${status}${phrase}\r\n${fields.join('\r\n')}\r\n\r\n`
  const body = framing === 'chunked' ? chunked(random, content) : bodiless ? [] : content
  const all = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)])
  const isCut = !bodiless && random.chance(0.1)
  const sent = isCut ? all.subarray(0, random.integer(1, all.length)) : all
  const closes = framing === 'close' || version === 'HTTP/1.0' || isCut
  return { pieces: split(random, sent), closes }
}

function randomContent(random: Random): Buffer {
  const length = random.pick([0, 1, 20, 700, 3000])
  if (random.chance(0.5)) return Buffer.from(JSON.stringify({ text: 'ü'.repeat(length) }))
  return Buffer.from(Array.from({ length }, () => random.integer(0, 255)))
}

function chunked(random: Random, content: Buffer): Buffer {
  const parts: string[] = []
  for (let at = 0; at < content.length; ) {
    const size = random.integer(1, content.length - at)
    const chunk = content.toString('latin1', at, at + size)
    parts.push(`${size.toString(16)}${random.chance(0.2) ? ';x=y' : ''}\r\n${chunk}\r\n`)
    at += size
  }
  const trailers = random.chance(0.3) ? 'X-Sum: 5\r\n' : ''
  return Buffer.from(`${parts.join('')}0\r\n${trailers}\r\n`, 'latin1')
}

function split(random: Random, bytes: Buffer): Buffer[] {
  if (random.chance(0.4)) return [bytes]
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = random.integer(1, bytes.length - at)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

/** A server that answers by a plan, and notes what it receives. */
export class PlannedServer implements AsyncDisposable {
  readonly origin: string
  readonly #close: () => PromiseLike<void>
  #answers: ReadonlyMap<string, readonly Answer[]> = new Map()
  #visits = new Map<string, number>()
  #log: string[] = []
  #connections = 0

  private constructor(origin: string, close: () => PromiseLike<void>) {
    this.origin = origin
    this.#close = close
  }

  static async start(): Promise<PlannedServer> {
    let self: PlannedServer | null = null
    const served = await listen(createServer((socket) => self!.#accept(socket)))
    self = new PlannedServer(served.origin, () => served[Symbol.asyncDispose]())
    return self
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }

  /** Does what `plan` says with a new client; a list of all that can be seen of it. */
  async play(plan: Plan, more: AsyncClientOptions): Promise<unknown[]> {
    this.#answers = plan.answers
    this.#visits = new Map()
    this.#log = []
    this.#connections = 0
    const seen: unknown[] = []
    const transport = new HttpTransport({ trustEnv: false })
    await using client = new AsyncClient({ ...plan.client, ...more, transport })
    for (const call of plan.calls) seen.push(await observed(client, call), transport.stats)
    await transport.close()
    return [...seen, this.#log, client.cookies.toJSON().map(({ createdAt: _, ...rest }) => rest)]
  }

  #accept(socket: Socket): void {
    const number = ++this.#connections
    let received = ''
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const end = requestEnd(received)
      if (end === -1) return
      const request = received.slice(0, end)
      received = received.slice(end)
      this.#log.push(`${number}: ${request}`)
      void this.#answer(socket, request)
    })
  }

  async #answer(socket: Socket, request: string): Promise<void> {
    const path = /^\S+ ([^ ?]*)/.exec(request)![1]!
    const visit = this.#visits.get(path) ?? 0
    this.#visits.set(path, visit + 1)
    const answers = this.#answers.get(path) ?? [plainAnswer('unknown')]
    const { pieces, closes } = answers[Math.min(visit, answers.length - 1)]!
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) await new Promise((resolve) => setImmediate(resolve))
      socket.write(piece)
    }
    if (closes) socket.end()
  }
}

/** Where the first request of `text` ends; -1 if it is incomplete. */
function requestEnd(text: string): number {
  const head = text.indexOf('\r\n\r\n') + 4
  if (head === 3) return -1
  const fields = text.slice(0, head).toLowerCase()
  const length = Number(/content-length: ([0-9]+)/.exec(fields)?.[1] ?? 0)
  if (!fields.includes('transfer-encoding')) return text.length < head + length ? -1 : head + length
  const last = text.indexOf('0\r\n\r\n', head)
  return last === -1 ? -1 : last + 5
}

/** Makes one call and describes everything that its caller can see. */
async function observed(client: AsyncClient, call: PlannedCall): Promise<unknown> {
  const events: unknown[] = []
  const note = (message: unknown, channel: string | symbol): void => {
    const { request, response, error } = message as {
      request: Request
      response?: AsyncResponse
      error?: { code?: string }
    }
    events.push([channel, request.method, request.url.href, response?.statusCode, error?.code])
  }
  const channels = ['request', 'response', 'error'].map((name) => `runwright.http.${name}`)
  for (const channel of channels) subscribe(channel, note)
  try {
    return { ...(await outcome(client, call, events)), events }
  } finally {
    for (const channel of channels) unsubscribe(channel, note)
  }
}

async function outcome(
  client: AsyncClient,
  call: PlannedCall,
  events: unknown[],
): Promise<Record<string, unknown>> {
  const controller = new AbortController()
  const reason = new Error('aborted')
  if (call.abort === 'before') controller.abort(reason)
  const given = call.options()
  const progress: Record<string, unknown> = {}
  const options: RequestOptions = {
    ...given,
    ...(call.abort === 'never' ? {} : { signal: controller.signal }),
    extensions: {
      ...given.extensions,
      onUpload: (sent, total) => (progress['sent'] = [sent, total]),
      onDownload: (received, total) => (progress['received'] = [received, total]),
      onInformation: (status, headers) => events.push([status, headers.raw]),
    },
  }
  try {
    const make = call.reading === 'whole' ? client.request : client.stream
    const calling = make.call(client, call.method, call.url, options)
    if (call.abort === 'same turn') controller.abort(reason)
    const response = await calling
    const before = state(response)
    if (call.reading === 'stream') for await (const _chunk of response.iterBytes());
    if (call.reading === 'close') await response.close()
    return { progress, before, after: state(response), ...described(response) }
  } catch (error) {
    return { progress, error: describedError(error) }
  }
}

function state(response: AsyncResponse): unknown[] {
  const { isClosed, isStreamConsumed, timings, statusCode, isSuccess } = response
  const phases = Object.entries(timings ?? {}).map(([name, ms]) => [name, ms === null])
  return [statusCode, isSuccess, isClosed, isStreamConsumed, phases, attempt(() => response.text)]
}

function described(response: AsyncResponse): Record<string, unknown> {
  const { reasonPhrase, httpVersion, headers, trailers, extensions, url, nextRequest } = response
  return {
    reasonPhrase,
    httpVersion,
    headers: [headers.raw, headers.toJSON()],
    trailers: trailers.raw,
    extensions: Object.keys(extensions),
    url: url.href,
    request: describedRequest(response.request),
    nextRequest: nextRequest === null ? null : describedRequest(nextRequest),
    history: response.history.map((earlier) => [earlier.statusCode, earlier.url.href]),
    authHistory: response.authHistory.length,
    encoding: attempt(() => response.encoding),
    json: attempt(() => response.json()),
    downloaded: response.numBytesDownloaded,
    elapsed: typeof attempt(() => response.elapsed),
  }
}

function describedRequest({ method, url, headers }: Request): unknown[] {
  return [method, url.href, headers.raw, headers.toJSON()]
}

/** What `read` returns or throws. */
function attempt(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    return describedError(error)
  }
}

function describedError(thrown: unknown): unknown {
  const error = thrown as Error & { code?: string; request?: Request; response?: AsyncResponse }
  return [
    error.name,
    error.code,
    error.message,
    error.request === undefined ? null : describedRequest(error.request),
    error.response === undefined ? null : described(error.response),
    (error.cause as { code?: string } | undefined)?.code,
  ]
}
