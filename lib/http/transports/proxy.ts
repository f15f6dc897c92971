import { isIP, type Socket } from 'node:net'
import { printAs } from '../inspect.js'
import { basicCredentials } from '../auth.js'
import { DEFAULT_MAX_HEADER_BYTES } from '../config.js'
import { ProxyError } from '../errors.js'
import { Headers, type HeadersInit } from '../headers.js'
import { parseUrl, percentDecoded, redactUrl } from '../url.js'
import { connectError } from './connect.js'
import { SocketReader } from './socket-reader.js'
import { socksConnect } from './socks5.js'

/** A proxy: its URL, or its parts. Printing shows no credentials. */
export type ProxyInit =
  | string
  | URL
  | {
      /** `http:`, `https:`, `socks5:` (names resolved here) or `socks5h:` (resolved by the proxy). */
      readonly url: string | URL
      /** Takes the place of the user name and password of the URL. */
      readonly auth?: readonly [username: string, password: string] | undefined
      /** Sent to the proxy only. */
      readonly headers?: HeadersInit | undefined
    }

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'socks5:': 1080, 'socks5h:': 1080 }

/** A proxy, resolved. */
export class Proxy {
  readonly protocol: string
  readonly host: string
  readonly port: number
  /** For the pool: same text, same proxy, credentials included. */
  readonly key: string
  readonly credentials: readonly [string, string] | null
  /** What goes to the proxy, with CONNECT or with each absolute-form request. */
  readonly headers: Headers
  readonly #url: URL

  /** @throws TypeError when the scheme is unknown. */
  constructor(init: ProxyInit) {
    const parts = typeof init === 'string' || init instanceof URL ? { url: init } : init
    const url = parseUrl(parts?.url, 'proxy')
    if (!(url.protocol in DEFAULT_PORTS)) {
      throw new TypeError(`proxy must be an http, https, socks5 or socks5h URL, got ${url.protocol}`)
    }
    this.#url = url
    this.protocol = url.protocol
    this.host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    this.port = url.port === '' ? DEFAULT_PORTS[url.protocol]! : Number(url.port)
    this.credentials = parts.auth ?? credentialsOf(url)
    this.headers = new Headers(parts.headers)
    if (this.credentials !== null && !this.socks) {
      this.headers.setDefault('Proxy-Authorization', basicCredentials(...this.credentials))
    }
    this.key = `${url.href} ${this.headers.toLines()}`
  }

  /** Whether it speaks SOCKS5 rather than HTTP. */
  get socks(): boolean {
    return this.protocol.startsWith('socks5')
  }

  /** Whether the way to the proxy itself is encrypted. */
  get secure(): boolean {
    return this.protocol === 'https:'
  }

  /** The URL without credentials. */
  toString(): string {
    return redactUrl(this.#url)
  }

  /** The URL without credentials. */
  toJSON(): string {
    return this.toString()
  }

  static {
    printAs(Proxy, (self) => {
      return `<Proxy [${self.toString()}]>`
    })
  }
}

function credentialsOf(url: URL): readonly [string, string] | null {
  if (url.username === '' && url.password === '') return null
  return [percentDecoded(url.username), percentDecoded(url.password)]
}

/** Turns an open connection to `proxy` into one to `host`. @throws {@link ProxyError} */
export async function tunnel(socket: Socket, proxy: Proxy, host: string, port: number): Promise<void> {
  if (!proxy.socks) {
    await connectTunnel(socket, proxy, host, port)
    return
  }
  const address = proxy.protocol === 'socks5:' ? await resolveHere(host) : host
  await socksConnect(socket, address, port, proxy.credentials)
}

async function resolveHere(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    const { lookup } = await import('node:dns/promises')
    return (await lookup(host)).address
  } catch (cause) {
    throw connectError(host, cause)
  }
}

/** CONNECT (RFC 9110, section 9.3.6). Only the proxy's own fields go with it. */
async function connectTunnel(socket: Socket, proxy: Proxy, host: string, port: number): Promise<void> {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const reader = new SocketReader(socket, 'the proxy')
  try {
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${proxy.headers.toLines()}\r\n`, 'latin1')
    for (;;) {
      const head = (await reader.takeUntil('\r\n\r\n', DEFAULT_MAX_HEADER_BYTES)).toString('latin1')
      const match = /^HTTP\/1\.[01] ([1-9][0-9]{2})(?: ([^\r\n]*))?\r\n/.exec(head)
      if (match === null) throw new ProxyError('the proxy does not speak HTTP/1.x')
      const status = Number(match[1])
      if (status < 200 && status !== 101) continue
      if (status < 200 || status > 299) throw refusal(status, match[2] ?? '')
      return
    }
  } finally {
    reader.release()
  }
}

function refusal(statusCode: number, reason: string): ProxyError {
  const hint = statusCode === 407 ? '; give the proxy a user name and password' : ''
  return new ProxyError(`the proxy refused to connect: ${statusCode} ${reason}${hint}`, { statusCode })
}
