import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { randomBytes } from 'node:crypto'
import { createRunService, type RunService, type RunServiceOptions } from 'runwright/server'
import { RawPeer } from '../helpers/raw-peer.js'
import { serve, type Served } from '../helpers/serve.js'
import { assertDescribed, assertMessageDescribed, type ApiDescription } from './conformance.js'
import { FakeEngine } from './fake-engine.js'

/** A response, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON. */
  readonly json: any
}

/** What a call sends. An object as body is sent as JSON. */
export interface CallOptions {
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer | object
}

/** One request on a connection of its own; unlike fetch it sends any headers. */
export function call(
  port: number,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const { body } = options
  const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
  const content = isJson ? JSON.stringify(body) : body
  const headers: Record<string, string> = {
    ...(isJson ? { 'content-type': 'application/json' } : {}),
    ...(content === undefined
      ? {}
      : { 'content-length': String(Buffer.byteLength(content as string)) }),
    ...options.headers,
  }
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', method, path, headers, agent: false })
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('error', reject)
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const { statusCode = 0, headers } = response
        resolve({
          status: statusCode,
          headers,
          text,
          get json() {
            return JSON.parse(text)
          },
        })
      })
    })
    request.end(content)
  })
}

/** A listening service over an engine of the test. */
export interface Opened extends AsyncDisposable {
  readonly service: RunService
  readonly served: Served
  readonly port: number
  readonly errors: unknown[]
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  socket(path: string, headers?: Record<string, string>): Promise<SocketClient>
}

/** Mounts a service at the root of a server of its own. */
export async function openService(
  options: Omit<RunServiceOptions, 'engine'> & { engine?: RunServiceOptions['engine'] } = {},
): Promise<Opened> {
  const errors: unknown[] = []
  const { engine = new FakeEngine() } = options
  const service = await createRunService({
    onError: (error) => errors.push(error),
    ...options,
    // Copies for sealed checks have tests of their own.
    engine: 'roots' in engine ? { sealedChecks: 'off', ...engine } : engine,
  })
  const served = await serve(service.handler)
  service.attach(served.server)
  const { port } = served
  let api: Promise<ApiDescription> | undefined
  return {
    service,
    served,
    port,
    errors,
    async call(method, path, more) {
      const answer = await call(port, method, path, more)
      // Every response is checked against the API description.
      api ??= call(port, 'GET', `${options.basePath ?? ''}/api/openapi.json`).then(
        ({ json }) => json,
      )
      assertDescribed(await api, method, path, answer)
      return answer
    },
    socket: (path, headers) => SocketClient.connect(port, path, headers),
    async [Symbol.asyncDispose]() {
      // Open connections are cut: closing would wait for a reader that the test left behind.
      const closed = service.close({ graceMs: 0 })
      await served.close()
      await closed
    },
  }
}

/** Parses a message of a stream and checks it against the description. */
function readMessage(payload: Buffer): any {
  const message: unknown = JSON.parse(payload.toString())
  assertMessageDescribed(message)
  return message
}

/** A WebSocket client on raw bytes, which shows exactly what was sent. */
export class SocketClient implements Disposable {
  readonly peer: RawPeer
  /** Status line and headers of the handshake response. */
  readonly head: string

  constructor(peer: RawPeer, head: string) {
    this.peer = peer
    this.head = head
  }

  static async connect(
    port: number,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<SocketClient> {
    const peer = await RawPeer.connect(port)
    const fields = {
      Host: `127.0.0.1:${port}`,
      Upgrade: 'websocket',
      Connection: 'Upgrade',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
      ...headers,
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    peer.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
    return new SocketClient(peer, await peer.takeUntil('\r\n\r\n'))
  }

  get status(): number {
    return Number(this.head.split(' ')[1])
  }

  /** The body of a refusal. */
  async problem(): Promise<any> {
    return JSON.parse((await this.peer.takeAll()).toString())
  }

  /** One frame: its opcode and payload. */
  async frame(): Promise<{ opcode: number; payload: Buffer }> {
    const [first, second] = await this.peer.take(2)
    let length = second! & 0x7f
    if (length === 126) length = (await this.peer.take(2)).readUInt16BE()
    else if (length === 127) length = Number((await this.peer.take(8)).readBigUInt64BE())
    return { opcode: first! & 0x0f, payload: await this.peer.take(length) }
  }

  /** The next event; pings are skipped. */
  async event(): Promise<any> {
    for (;;) {
      const { opcode, payload } = await this.frame()
      if (opcode === 1) return readMessage(payload)
      if (opcode !== 9) throw new Error(`unexpected frame ${opcode}: ${payload.toString('hex')}`)
    }
  }

  /** All events up to the Close frame, and its code. */
  async rest(): Promise<{ events: any[]; code: number; reason: string }> {
    const events: any[] = []
    for (;;) {
      const { opcode, payload } = await this.frame()
      if (opcode === 1) events.push(readMessage(payload))
      if (opcode !== 8) continue
      const code = payload.length >= 2 ? payload.readUInt16BE() : 1005
      return { events, code, reason: payload.subarray(2).toString() }
    }
  }

  /** Sends a masked text message; the key is zero. */
  send(text: string): void {
    const payload = Buffer.from(text)
    const { length } = payload
    const header = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 0xff]
    this.peer.write(Buffer.concat([Buffer.from([...header, 0, 0, 0, 0]), payload]))
  }

  [Symbol.dispose](): void {
    this.peer[Symbol.dispose]()
  }
}
