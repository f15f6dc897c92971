/**
 * HTTP Archive 1.2: the fields that are read and written here. Others are kept as they are.
 *
 * @module
 */

/** A name and its value, as of a header field, a cookie or a query parameter. */
export interface HarPair {
  name: string
  value: string
}

/** A failure in place of a response, or of its end. */
export interface HarError {
  name: string
  message: string
  code?: string | undefined
  timeoutMs?: number | undefined
  statusCode?: number | undefined
}

/** The request of an exchange, secrets masked. */
export interface HarRequest {
  method: string
  url: string
  httpVersion: string
  cookies: HarPair[]
  headers: HarPair[]
  queryString: HarPair[]
  postData?: {
    mimeType: string
    params?: HarPair[]
    text: string
    /** "base64" when the body is not text. */
    _encoding?: string
  }
  headersSize: number
  bodySize: number
}

/** The response of an exchange, secrets masked. */
export interface HarResponse {
  /** 0 when there was none; `_error` says why. */
  status: number
  statusText: string
  httpVersion: string
  cookies: HarPair[]
  headers: HarPair[]
  content: {
    /** Length in bytes, decoded. */
    size: number
    compression?: number
    mimeType: string
    text?: string
    /** "base64" when the content is not text. */
    encoding?: string
    /** Whether `text` is still in its Content-Encoding, which could not be decoded. */
    _encoded?: boolean
  }
  redirectURL: string
  headersSize: number
  bodySize: number
  _trailers?: HarPair[]
  _error?: HarError | string
}

/** One exchange, as a HAR file holds it. */
export interface HarEntry {
  startedDateTime: string
  time: number
  request: HarRequest
  response: HarResponse
  cache: object
  timings: Record<string, number>
}

/** `text` as HAR has it: as it is when it is UTF-8, else in base64. */
export function textOf(bytes: Uint8Array): { text: string; base64: boolean } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('utf8')
  // A lone surrogate or an invalid sequence would come back as other bytes.
  const base64 = !Buffer.from(text, 'utf8').equals(buffer)
  return { text: base64 ? buffer.toString('base64') : text, base64 }
}
