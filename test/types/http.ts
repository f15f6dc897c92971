// Compiled, never run: the types that users of runwright/http rely on.
import type {
  AsyncClient,
  AsyncClientOptions,
  AsyncResponse,
  Client,
  ClientOptions,
  HttpErrorCode,
  Request,
  RetryTransport,
  MockTransport,
  RequestOptions,
  Response,
  TimeoutOptions,
} from 'runwright/http'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

declare const asyncClient: AsyncClient
declare const client: Client

// Both clients have the same methods, and a call of one is the promise of a call of the other.
type Methods = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options' | 'request' | 'stream' | 'send'
yes<Equal<Exclude<keyof AsyncClient, typeof Symbol.asyncDispose>, Exclude<keyof Client, typeof Symbol.dispose>>>()
yes<Equal<{ [K in Methods]: Parameters<AsyncClient[K]> }, { [K in Methods]: Parameters<Client[K]> }>>()
yes<Equal<{ [K in Methods]: ReturnType<AsyncClient[K]> }, { [K in Methods]: Promise<AsyncResponse> }>>()
yes<Equal<{ [K in Methods]: ReturnType<Client[K]> }, { [K in Methods]: Response }>>()

// Everything but reading is the same on both responses.
type Reading = 'read' | 'iterRaw' | 'iterBytes' | 'iterText' | 'iterLines' | 'close' | 'stream' | 'raiseForStatus' | 'adopt'
type Shared<R> = Omit<R, Reading | typeof Symbol.dispose | typeof Symbol.asyncDispose>
yes<Equal<Shared<Response>, Shared<AsyncResponse>>>()

interface Item {
  id: string
}
declare const response: Response
yes<Equal<ReturnType<typeof response.json<Item>>, Item>>()
yes<Equal<ReturnType<typeof response.json>, unknown>>()
yes<Equal<typeof response.content, Uint8Array>>()

export async function calls(): Promise<void> {
  const made: AsyncResponse = await asyncClient.post('/x', { json: { a: 1 }, timeout: { read: null } })
  made.raiseForStatus().json<Item>().id.toUpperCase()
  const same: Response = client.get('/x', { auth: ['u', 'p'], params: { a: [1, 2], b: null, c: undefined } })
  for (const line of same.iterLines()) line.trim()
  for await (const chunk of made.iterBytes({ chunkSize: 10 })) chunk.byteLength.toFixed()
  const files = { a: ['n', 'content', 'text/plain'], b: new Uint8Array(1) } as const
  await asyncClient.post('/x', { data: { k: 1 }, files })
  // @ts-expect-error a time limit is a number, an object or null
  await asyncClient.get('/x', { timeout: '5s' })
  // @ts-expect-error there is no such option
  await asyncClient.get('/x', { followRedirect: true })
  // @ts-expect-error content is no object; use json
  await asyncClient.post('/x', { content: { a: 1 } })
  // @ts-expect-error json() without a type is unknown
  made.json().id
}

export const inherits: RequestOptions = { auth: undefined, timeout: undefined, followRedirects: undefined }
export const switchedOff: RequestOptions = { auth: null, timeout: null, headers: null, params: null }
export const phases: TimeoutOptions = { connect: 1, read: 2, write: 3, pool: 4, total: null }
export const code: HttpErrorCode = 'ERR_HTTP_READ_TIMEOUT'
// @ts-expect-error no such code
export const wrong: HttpErrorCode = 'ERR_HTTP_NOPE'

// Both clients take the same options, but for the types of their hooks and transports.
type Options = Exclude<keyof ClientOptions, 'eventHooks' | 'mounts' | 'transport'>
yes<Equal<Pick<ClientOptions, Options>, Pick<AsyncClientOptions, Options>>>()
yes<Equal<keyof ClientOptions, keyof AsyncClientOptions>>()

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
// @ts-expect-error Client cannot have hooks for the response of AsyncClient
export const mixed: ClientOptions = { eventHooks: { response: [(response: AsyncResponse) => response.read()] } }
// @ts-expect-error options are exact
export const misspelt: ClientOptions = { baseURL: 'https://a.test' }
export const nulls: ClientOptions = { auth: null, headers: null, proxy: null, timeout: null, retry: null, maxResponseBytes: null }
declare const around: RetryTransport<MockTransport>
export const either: [AsyncClientOptions, ClientOptions] = [{ transport: around }, { transport: around }]
