import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import {
  AsyncClient,
  Client,
  type AsyncClientOptions,
  type AsyncResponse,
  type ClientOptions,
  type Response,
} from 'runwright/http'

/** Either client. Await its calls and use `for await`, which work for both. */
export type AnyClient = AsyncClient | Client
export type AnyResponse = AsyncResponse | Response
/** Options that both clients accept. */
export type AnyClientOptions = Omit<ClientOptions, 'transport'> & {
  readonly transport?: (AsyncClientOptions['transport'] & ClientOptions['transport']) | undefined
}

/** What a test of both clients works with. */
export interface World {
  readonly client: AnyClient
  /** Makes a client of the same kind; the test closes it at its end. */
  make(options?: AnyClientOptions): AnyClient
  /** Origin of the server `app-worker.mjs`. */
  readonly origin: string
  /** Its origin with TLS, for HTTP/1.1 and HTTP/2. */
  readonly secureOrigin: string
}

/** Path of the CA that signed the certificate of `secureOrigin`. */
export const testCa: string = fileURLToPath(
  new URL('../fixtures/http/certs/ca.pem', import.meta.url),
)

let app: Worker | null = null
let origin = ''
let secureOrigin = ''

/**
 * Starts the server for the tests of a file, on another thread, since `Client` blocks this one.
 * Files that share a process share it.
 */
export function useApp(): void {
  before(async () => {
    if (app !== null) return
    app = new Worker(new URL('../fixtures/http/app-worker.mjs', import.meta.url), { execArgv: [] })
    const [{ port, securePort }] = (await once(app, 'message')) as [
      { port: number; securePort: number },
    ]
    origin = `http://127.0.0.1:${port}`
    secureOrigin = `https://127.0.0.1:${securePort}`
  })
  after(async () => {
    if (app === null) return
    const closing = app
    app = null
    closing.postMessage('close')
    await once(closing, 'exit')
  })
}

/** Defines two tests of one behaviour, for `AsyncClient` and for `Client`. */
export function behaviour(
  name: string,
  show: (world: World) => Promise<void>,
  options: AnyClientOptions = {},
): void {
  for (const kind of ['AsyncClient', 'Client'] as const) {
    test(`${kind}: ${name}`, async () => {
      const made: AnyClient[] = []
      const make = (more: AnyClientOptions = {}): AnyClient => {
        const all = { ...options, ...more }
        const client =
          kind === 'Client'
            ? new Client(all)
            : new AsyncClient(all as unknown as AsyncClientOptions)
        made.push(client)
        return client
      }
      try {
        const client = make(options.baseUrl === undefined ? { baseUrl: origin } : {})
        await show({ client, make, origin, secureOrigin })
      } finally {
        for (const client of made) await client.close()
      }
    })
  }
}

/** The items of an iterable, synchronous or not. */
export async function collect<T>(source: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** The error that a call of either client ends with; throws if it succeeds. */
export async function failure(call: () => unknown): Promise<Error & { code?: string }> {
  try {
    await call()
  } catch (error) {
    return error as Error & { code?: string }
  }
  throw new Error('the call succeeded')
}
