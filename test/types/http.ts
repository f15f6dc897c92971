// Compiled, never run: the types on which users of runwright/http rely.
import type { lookup } from 'node:dns'
import type {
  AsyncClient,
  AsyncClientOptions,
  AsyncResponse,
  BaseResponse,
  Client,
  ClientOptions,
  HttpErrorCode,
  HttpStatusError,
  Request,
  RequestError,
  RetryTransport,
  MockTransport,
  RequestOptions,
  Response,
  ResponsePromise,
  TimeoutOptions,
} from 'runwright/http'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

declare const asyncClient: AsyncClient
declare const client: Client

// Both clients have the same methods, and a call of one is the promise of a call of the other. Only
// AsyncClient has `fetch`, which returns promises.
type Verbs = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options'
type Methods = Verbs | 'request' | 'stream' | 'send'
type AsyncMembers = Exclude<keyof AsyncClient, typeof Symbol.asyncDispose | 'fetch'>
type Members = Exclude<keyof Client, typeof Symbol.dispose>
yes<Equal<AsyncMembers, Members>>()
type AsyncParameters = { [K in Methods]: Parameters<AsyncClient[K]> }
type BlockingParameters = { [K in Methods]: Parameters<Client[K]> }
yes<Equal<AsyncParameters, BlockingParameters>>()
yes<Equal<AsyncClient['fetch'], typeof globalThis.fetch>>()
type AsyncResults = { [K in Methods]: ReturnType<AsyncClient[K]> }
type Promised<K> = K extends 'stream' | 'send' ? Promise<AsyncResponse> : ResponsePromise
yes<Equal<AsyncResults, { [K in Methods]: Promised<K> }>>()
yes<Equal<Awaited<ResponsePromise>, AsyncResponse>>()
yes<Equal<{ [K in Methods]: ReturnType<Client[K]> }, { [K in Methods]: Response }>>()

// Everything but reading is the same on both responses.
type Iterating = 'iterRaw' | 'iterBytes' | 'iterText' | 'iterLines'
type Reading = Iterating | 'read' | 'close' | 'stream'
type ReturningThis = 'raiseForStatus' | 'adopt'
type Disposing = typeof Symbol.dispose | typeof Symbol.asyncDispose
type Shared<R> = Omit<R, Reading | ReturningThis | Disposing>
yes<Equal<Shared<Response>, Shared<AsyncResponse>>>()

interface Item {
  id: string
}
declare const response: Response
yes<Equal<ReturnType<typeof response.json<Item>>, Item>>()
yes<Equal<ReturnType<typeof response.json>, unknown>>()
yes<Equal<typeof response.content, Uint8Array>>()

export async function calls(): Promise<void> {
  const posted = { json: { a: 1 }, timeout: { read: null } }
  const made: AsyncResponse = await asyncClient.post('/x', posted)
  made.raiseForStatus().json<Item>().id.toUpperCase()
  const [item, unknown] = await Promise.all([
    asyncClient.get('/x').json<Item>(),
    asyncClient.request('GET', '/x').json(),
  ])
  yes<Equal<[typeof item, typeof unknown], [Item, unknown]>>()
  const text: string = await asyncClient.get('/x').text()
  const bytes: Uint8Array = await asyncClient.get('/x').bytes()
  void [text, bytes]
  const params = { a: [1, 2], b: null, c: undefined }
  const same: Response = client.get('/x', { auth: ['u', 'p'], params })
  for (const line of same.iterLines()) line.trim()
  for await (const chunk of made.iterBytes({ chunkSize: 10 })) chunk.byteLength.toFixed()
  const files = { a: ['n', 'content', 'text/plain'], b: new Uint8Array(1) } as const
  await asyncClient.post('/x', { data: { k: 1 }, files })
  // @ts-expect-error a time limit is a number, an object or null
  await asyncClient.get('/x', { timeout: '5s' })
  // @ts-expect-error there is no such option
  await asyncClient.get('/x', { followRedirect: true })
  // @ts-expect-error content must not be an object; use json
  await asyncClient.post('/x', { content: { a: 1 } })
  // @ts-expect-error json() without a type is unknown
  made.json().id
}

export const inherits: RequestOptions = {
  auth: undefined,
  timeout: undefined,
  followRedirects: undefined,
}
export const switchedOff: RequestOptions = {
  auth: null,
  timeout: null,
  headers: null,
  params: null,
}
export const phases: TimeoutOptions = { connect: 1, read: 2, write: 3, pool: 4, total: null }
export const code: HttpErrorCode = 'ERR_HTTP_READ_TIMEOUT'
// @ts-expect-error no such code
export const wrong: HttpErrorCode = 'ERR_HTTP_NOPE'

// Both clients have the same options, except for the types of hooks and transports, and `lookup`,
// which the thread of Client cannot call.
type Options = Exclude<keyof ClientOptions, 'eventHooks' | 'mounts' | 'transport'>
yes<Equal<Pick<ClientOptions, Options>, Pick<AsyncClientOptions, Options>>>()
yes<Equal<keyof ClientOptions, Exclude<keyof AsyncClientOptions, 'lookup'>>>()
declare const dnsLookup: typeof lookup
export const resolving: AsyncClientOptions = { lookup: dnsLookup }

export const hooked: AsyncClientOptions = {
  eventHooks: {
    request: [(request: Request) => request.headers.set('X-A', '1')],
    response: [async (response: AsyncResponse) => void (await response.read())],
    redirect: [(next, response) => next.url.host === response.url.host],
    retry: [({ tries, delayMs }) => tries * delayMs < 1000],
  },
  retry: { retries: 3, statuses: [503] },
}
export const blockingHooks: ClientOptions = {
  eventHooks: { response: [(response: Response) => void response.read()] },
}
const asyncHook = (response: AsyncResponse): unknown => response.read()
// @ts-expect-error Client cannot have hooks for the response of AsyncClient
export const mixed: ClientOptions = { eventHooks: { response: [asyncHook] } }
// @ts-expect-error options are exact
export const misspelt: ClientOptions = { baseURL: 'https://a.test' }
export const nulls: ClientOptions = {
  auth: null,
  headers: null,
  proxy: null,
  timeout: null,
  retry: null,
  maxResponseBytes: null,
}
declare const around: RetryTransport<MockTransport>
export const either: [AsyncClientOptions, ClientOptions] = [
  { transport: around },
  { transport: around },
]

// Errors carry the very classes of request and response, which errors.ts does not import.
yes<Equal<RequestError['request'], Request | undefined>>()
yes<Equal<HttpStatusError['request'], Request>>()
yes<Equal<HttpStatusError['response'], BaseResponse>>()
