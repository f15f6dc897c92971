import {
  AsyncClient,
  HttpError,
  type AsyncTransport,
  type RequestOptions,
} from '../../../http/index.js'
import { isJsonObject, parseJson, type JsonObject } from '../../../internal/json.js'
import { McpError } from '../../errors.js'
import { refuseUrl } from './allowed-url.js'

/** Milliseconds for one exchange. */
const EXCHANGE_MS = 30_000
/** Bytes of one response. */
const MAX_BYTES = 256 << 10

/** A response; `body` is empty unless it is a JSON object. */
export interface OAuthResponse {
  readonly status: number
  readonly body: JsonObject
}

/** Exchanges with authorization servers, of which the MCP server at `near` has told. */
export class OAuthRequests {
  readonly #server: string
  readonly #near: URL
  readonly #client: AsyncClient

  constructor(server: string, near: URL, transport: AsyncTransport | undefined) {
    this.#server = server
    this.#near = near
    this.#client = new AsyncClient({
      timeout: { total: EXCHANGE_MS },
      maxResponseBytes: MAX_BYTES,
      ...(transport !== undefined && { transport }),
    })
  }

  /** A JSON document, or null if there is none at this address. */
  async document(what: string, url: URL, signal: AbortSignal): Promise<JsonObject | null> {
    const { status, body } = await this.#send('GET', what, url, { signal })
    if (status >= 200 && status < 300) return body
    if (status >= 400 && status < 500) return null
    throw new McpError(this.#server, 'unreachable', `${what} was answered with ${status}`)
  }

  async post(what: string, url: URL, options: RequestOptions): Promise<OAuthResponse> {
    return await this.#send('POST', what, url, options)
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #send(
    method: string,
    what: string,
    url: URL,
    options: RequestOptions,
  ): Promise<OAuthResponse> {
    const refused = await refuseUrl(url, this.#near)
    if (refused !== null) {
      const detail = `${what} has an unusable address: ${refused}`
      throw new McpError(this.#server, 'unauthorized', detail)
    }
    try {
      const response = await this.#client.request(method, url.href, {
        ...options,
        auth: null,
        cookies: null,
        headers: { accept: 'application/json', ...(options.headers as Record<string, string>) },
      })
      const value = parseJson(response.text)
      const body = value !== undefined && isJsonObject(value) ? value : {}
      return { status: response.statusCode, body }
    } catch (error) {
      options.signal?.throwIfAborted()
      if (!(error instanceof HttpError)) throw error
      const detail = `${what} cannot be had: ${error.message}`
      throw new McpError(this.#server, 'unreachable', detail, { cause: error })
    }
  }
}
