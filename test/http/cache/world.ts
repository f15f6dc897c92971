import { test } from 'node:test'
import {
  AsyncClient,
  CacheTransport,
  Client,
  Cookies,
  MockTransport,
  Response,
  type AsyncResponse,
  type CacheStore,
  type CacheTransportOptions,
  type Request,
  type RequestOptions,
} from 'runwright/http'

export const KINDS = ['AsyncClient', 'Client'] as const
export type Kind = (typeof KINDS)[number]
export type Fields = Readonly<Record<string, string | readonly string[]>>

/** What the origin answers: an error to throw, or a response, by default 200 with a numbered body. */
export interface Answer {
  readonly status?: number
  readonly headers?: Fields
  readonly body?: string
  readonly error?: Error
}

/** Monday, with no fraction of a second. */
export const START: number = Date.parse('2026-06-01T00:00:00Z')

/** A client over a cache over an origin, with a clock that the test moves. */
export class World {
  now: number = START
  /** What the origin answers next; the last one again and again. */
  answers: Answer[] = []
  readonly origin: MockTransport
  readonly transport: CacheTransport<MockTransport>
  readonly client: AsyncClient | Client

  constructor(kind: Kind, options: CacheTransportOptions = {}, clientOptions: object = {}) {
    this.origin = new MockTransport((request) => this.#answer(request))
    this.transport = new CacheTransport(this.origin, { now: () => this.now, ...options })
    const cookies = new Cookies(null, { persist: false })
    const given = { transport: this.transport, cookies, baseUrl: 'http://a.test', ...clientOptions }
    this.client = kind === 'Client' ? new Client(given) : new AsyncClient(given)
  }

  /** Requests that have reached the origin. */
  get requests(): readonly Request[] {
    return this.origin.requests
  }

  async get(path = '/', options: RequestOptions = {}): Promise<Response | AsyncResponse> {
    return this.client.get(path, options)
  }

  async request(
    method: string,
    path = '/',
    options: RequestOptions = {},
  ): Promise<Response | AsyncResponse> {
    return this.client.request(method, path, options)
  }

  /** Moves the clock. */
  wait(seconds: number): void {
    this.now += seconds * 1000
  }

  /** An HTTP date `seconds` from now. */
  date(seconds = 0): string {
    return new Date(this.now + seconds * 1000).toUTCString()
  }

  #answer(request: Request): Response {
    const answer = this.answers.length > 1 ? this.answers.shift()! : (this.answers[0] ?? {})
    if (answer.error !== undefined) throw answer.error
    const { status = 200 } = answer
    const headers = { Date: this.date(), ...answer.headers }
    const hasBody = request.method !== 'HEAD' && status !== 304 && status !== 204
    const body = hasBody ? (answer.body ?? `body ${this.requests.length}`) : ''
    return new Response(status, { headers, content: Buffer.from(body) })
  }
}

/** Defines a test of one behaviour for each client. */
export function both(
  name: string,
  show: (world: World, kind: Kind) => Promise<void>,
  options: CacheTransportOptions = {},
): void {
  for (const kind of KINDS) {
    test(`${kind}: ${name}`, async () => {
      const world = new World(kind, options)
      try {
        await show(world, kind)
      } finally {
        await world.client.close()
        await world.transport.close()
      }
    })
  }
}

/** A store that fails or does what the test wants. */
export function storeOf(methods: Partial<CacheStore>): CacheStore {
  return { get: () => null, set: () => {}, delete: () => {}, ...methods }
}
