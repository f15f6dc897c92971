import type { ServerResponse } from 'node:http'
import {
  HttpTransport, type AsyncByteStream, type AsyncTransport, type Request, type TransportResponse,
} from 'runwright/http'
import { serve } from './serve.js'

/** How the body of an answer arrives: as it was sent, or each byte alone. */
export const DELIVERIES = ['at once', 'byte by byte'] as const
export type Delivery = (typeof DELIVERIES)[number]

/** What a server answers. */
export interface Answer {
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Text is a stream of events, anything else is sent as JSON. */
  readonly body: unknown
  /** The connection is dropped after this many bytes. @defaultValue never */
  readonly breaksAfter?: number | undefined
}

/** A server on a port of its own. */
export interface AnsweringServer extends AsyncDisposable {
  readonly origin: string
  /** The bodies of the requests, in order. */
  readonly requests: readonly string[]
  /** How clients reach it. */
  readonly transport: AsyncTransport
  close(): Promise<void>
}

/** Starts a server whose `n`th request gets the `n`th answer, and every later one the last. */
export async function answering(
  answers: readonly Answer[],
  delivery: Delivery,
): Promise<AnsweringServer> {
  const requests: string[] = []
  const served = await serve((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      requests.push(body)
      deliver(response, answers[Math.min(requests.length, answers.length) - 1]!, delivery)
    })
  })
  const transport = delivery === 'at once' ? new HttpTransport() : new ByteTransport()
  const { close, origin } = served
  return { origin, requests, transport, close, [Symbol.asyncDispose]: close }
}

/** The bytes of a body. */
export function bytesOf(body: unknown): Buffer {
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

function deliver(response: ServerResponse, answer: Answer, delivery: Delivery): void {
  const { status = 200, headers, body, breaksAfter } = answer
  const type = typeof body === 'string' ? 'text/event-stream' : 'application/json'
  response.writeHead(status, { 'content-type': type, ...headers }).flushHeaders()
  const bytes = bytesOf(body).subarray(0, breaksAfter)
  const size = delivery === 'at once' ? Math.max(1, bytes.length) : 1
  const breakOff = (): void => void response.destroy()
  for (let at = 0; at < bytes.length; at += size) {
    const isLast = breaksAfter !== undefined && at + size >= bytes.length
    response.write(bytes.subarray(at, at + size), isLast ? breakOff : undefined)
  }
  if (breaksAfter === undefined) response.end()
  else if (bytes.length === 0) setImmediate(breakOff)
}

/** The network, of which each byte of an answer is handed over alone. */
class ByteTransport implements AsyncTransport {
  readonly #network = new HttpTransport()

  async handleRequest(request: Request): Promise<TransportResponse> {
    const response = await this.#network.handleRequest(request)
    return {
      statusCode: response.statusCode,
      headers: response.headers,
      stream: new SingleBytes(response.stream as AsyncByteStream),
    }
  }

  close(): Promise<void> {
    return this.#network.close()
  }
}

class SingleBytes implements AsyncByteStream {
  readonly #stream: AsyncByteStream

  constructor(stream: AsyncByteStream) {
    this.#stream = stream
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#stream)
      for (let at = 0; at < chunk.length; at++) yield chunk.subarray(at, at + 1)
  }

  close(): Promise<void> | void {
    return this.#stream.close?.()
  }
}
