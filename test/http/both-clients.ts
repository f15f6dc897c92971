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

/** Either client: whatever a call returns may be awaited, and what it iterates may be `for await`ed. */
export type AnyClient = AsyncClient | Client
/** Either response. */
export type AnyResponse = AsyncResponse | Response
/** Options that both clients take. */
export type AnyClientOptions = Omit<ClientOptions, 'transport'> & {
  readonly transport?: (AsyncClientOptions['transport'] & ClientOptions['transport']) | undefined
}

/** What a behaviour is shown on. */
export interface World {
  readonly client: AnyClient
  /** A client of the same kind, closed at the end. */
  make(options?: AnyClientOptions): AnyClient
  /** Where the server of `app-worker.mjs` listens. */
  readonly origin: string
  /** Where it listens with TLS, for HTTP/1.1 and HTTP/2. */
  readonly secureOrigin: string
}

/** What clients trust to call `secureOrigin`. */
export const testCa: string = fileURLToPath(
  new URL('../fixtures/http/certs/ca.pem', import.meta.url),
)

let app: Worker | null = null
let origin = ''
let secureOrigin = ''

/** Starts the server for a file's behaviours, on a thread of its own; files of one process share it. */
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

/** One behaviour, shown on `AsyncClient` and on `Client`. */
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

/** All of an iterator that may or may not be asynchronous. */
export async function collect<T>(source: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** The error of a call, whichever client it was made on; fails when there is none. */
export async function failure(call: () => unknown): Promise<Error & { code?: string }> {
  try {
    await call()
  } catch (error) {
    return error as Error & { code?: string }
  }
  throw new Error('the call succeeded')
}
