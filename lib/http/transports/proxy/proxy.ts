import { isIP, type LookupFunction, type Socket } from 'node:net'
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import { printAs } from '../../inspect.js'
import { basicCredentials } from '../../auth/auth.js'
import { DEFAULT_MAX_HEADER_BYTES } from '../../config.js'
import { DigestCredentials } from '../../auth/digest-credentials.js'
import { ProtocolError, ProxyError } from '../../errors.js'
import { Headers, type HeadersInit } from '../../headers.js'
import { parseUrl, percentDecoded, redactUrl } from '../../url.js'
import { hostOf } from '../../url.js'
import { connectError } from '../connect.js'
import { MAX_INFORMATIONAL } from '../failures.js'
import { resolveOne } from '../lookup.js'
import { HandshakeReader } from './handshake-reader.js'
import { socksConnect } from './socks5.js'

/** A proxy: its URL, or its parts. */
export type ProxyInit =
  | string
  | URL
  | {
      /** `http:`, `https:`, `socks5:` (resolves names here) or `socks5h:` (the proxy resolves). */
      readonly url: string | URL
      /** Replaces the user name and password of the URL. */
      readonly auth?: readonly [username: string, password: string] | undefined
      /**
       * How they are sent to an HTTP proxy. `basic` sends them with every request, and answers a
       * Digest challenge (RFC 7616) if the proxy refuses that; `digest` never sends the password.
       * @defaultValue 'basic'
       */
      readonly authScheme?: 'basic' | 'digest' | undefined
      /** Sent to the proxy only. */
      readonly headers?: HeadersInit | undefined
    }

const PROXY: OptionKinds<Exclude<ProxyInit, string | URL>> = {
  url: 'any! a URL such as http://proxy.example:3128', auth: 'array', authScheme: 'string',
  headers: 'any',
}
const NO_BYTES = new Uint8Array(0)
const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'socks5:': 1080,
  'socks5h:': 1080,
}

/** A proxy with its defaults filled in. Printing it shows no credentials. */
export class Proxy {
  readonly protocol: string
  readonly host: string
  readonly port: number
  /** Equal for equal proxies, credentials included. */
  readonly key: string
  readonly credentials: readonly [string, string] | null
  /** Fields for the proxy, sent with CONNECT or with each absolute-form request. */
  readonly headers: Headers
  readonly #digest: DigestCredentials | null
  readonly #url: URL

  /** @throws TypeError when the scheme is unknown, or `headers` has a field of the request. */
  constructor(init: ProxyInit) {
    const parts = typeof init === 'string' || init instanceof URL ? { url: init } : init
    checkOptions(parts, PROXY, 'proxy')
    const url = parseUrl(parts.url, 'proxy')
    if (!(url.protocol in DEFAULT_PORTS)) {
      throw new TypeError(
        `proxy must be an http, https, socks5 or socks5h URL, got ${url.protocol}`,
      )
    }
    this.#url = url
    this.protocol = url.protocol
    this.host = hostOf(url)
    this.port = url.port === '' ? DEFAULT_PORTS[url.protocol]! : Number(url.port)
    this.credentials = parts.auth ?? credentialsOf(url)
    this.headers = new Headers(parts.headers)
    for (const name of ['host', 'content-length', 'transfer-encoding']) {
      if (this.headers.has(name))
        throw new TypeError(`proxy.headers must not have ${name}, which each request has itself`)
    }
    const scheme = parts.authScheme ?? 'basic'
    if (scheme !== 'basic' && scheme !== 'digest') {
      throw new TypeError(`proxy.authScheme must be 'basic' or 'digest', got ${String(scheme)}`)
    }
    this.#digest =
      this.credentials === null || this.socks ? null : new DigestCredentials(...this.credentials)
    if (this.credentials !== null && !this.socks && scheme === 'basic') {
      this.headers.setDefault('Proxy-Authorization', basicCredentials(...this.credentials))
    }
    this.key = `${url.href} ${scheme} ${this.headers.toLines()}`
  }

  /** Whether this is a SOCKS5 proxy, not an HTTP one. */
  get socks(): boolean {
    return this.protocol.startsWith('socks5')
  }

  /** Whether the connection to the proxy itself is encrypted. */
  get secure(): boolean {
    return this.protocol === 'https:'
  }

  /**
   * The fields for one request to the proxy, signed if it has asked for Digest.
   *
   * @param content - The request's body; null when it is a stream.
   */
  headersFor(method: string, target: string, content: Uint8Array | null): Headers {
    const signed = this.#digest?.authorize(method, target, content) ?? null
    if (signed === null) return this.headers
    const headers = new Headers(this.headers)
    headers.set('Proxy-Authorization', signed)
    return headers
  }

  /**
   * Takes the challenges of a 407; true when the request must be sent again, signed.
   *
   * @param tries - How many challenges to this request were answered before.
   */
  challenged(fields: readonly string[], tries: number): boolean {
    try {
      return this.#digest?.challenged(fields, tries) ?? false
    } catch (error) {
      // An unknown kind of Digest: the proxy's refusal stands.
      if (error instanceof ProtocolError) return false
      throw error
    }
  }

  /** The URL without credentials. */
  toString(): string {
    return redactUrl(this.#url)
  }

  /** Keeps credentials out of `JSON.stringify()` too. */
  toJSON(): string {
    return this.toString()
  }

  static {
    printAs(Proxy, (self) => `<Proxy [${self.toString()}]>`)
  }
}

function credentialsOf(url: URL): readonly [string, string] | null {
  if (url.username === '' && url.password === '') return null
  return [percentDecoded(url.username), percentDecoded(url.password)]
}

/**
 * Turns an open connection to `proxy` into one to `host`. False when the proxy sent a challenge
 * that the next attempt will answer, over a new connection: the proxy may close this one.
 *
 * @param tries - How many challenges were answered before.
 * @throws {@link ProxyError}
 */
export async function tunnel(
  socket: Socket,
  proxy: Proxy,
  target: { readonly host: string; readonly port: number; readonly lookup: LookupFunction | null },
  tries: number,
): Promise<boolean> {
  const { host, port, lookup } = target
  if (!proxy.socks) return await connectTunnel(socket, proxy, host, port, tries)
  const address = proxy.protocol === 'socks5:' ? await resolveHere(host, lookup) : host
  await socksConnect(socket, address, port, proxy.credentials)
  return true
}

async function resolveHere(host: string, lookup: LookupFunction | null): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    return await resolveOne(host, lookup)
  } catch (cause) {
    throw connectError(host, cause)
  }
}

/** Sends CONNECT (RFC 9110, section 9.3.6) with none of the request's fields. */
async function connectTunnel(
  socket: Socket,
  proxy: Proxy,
  host: string,
  port: number,
  tries: number,
): Promise<boolean> {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const reader = new HandshakeReader(socket, 'the proxy')
  try {
    const lines = proxy.headersFor('CONNECT', authority, NO_BYTES).toLines()
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${lines}\r\n`, 'latin1')
    for (let informational = 0; ; informational++) {
      if (informational > MAX_INFORMATIONAL) {
        const text = `the proxy sent more than ${MAX_INFORMATIONAL} informational responses`
        throw new ProxyError(text)
      }
      const head = (await reader.takeUntil('\r\n\r\n', DEFAULT_MAX_HEADER_BYTES)).toString('latin1')
      const match = /^HTTP\/1\.[01] ([1-9][0-9]{2})(?: ([^\r\n]*))?\r\n/.exec(head)
      if (match === null) throw new ProxyError('the proxy does not speak HTTP/1.x')
      const status = Number(match[1])
      if (status < 200 && status !== 101) continue
      if (status >= 200 && status <= 299) return true
      if (status === 407 && proxy.challenged(challengesIn(head), tries)) return false
      throw refusal(status, match[2] ?? '')
    }
  } finally {
    reader.release()
  }
}

/** The values of all Proxy-Authenticate fields in `head`. */
function challengesIn(head: string): string[] {
  return [...head.matchAll(/\r\nproxy-authenticate:[ \t]*([^\r\n]*)/gi)].map((match) => match[1]!)
}

function refusal(statusCode: number, reason: string): ProxyError {
  const hint = statusCode === 407 ? '; check the user name and password of the proxy' : ''
  return new ProxyError(`the proxy refused to connect: ${statusCode} ${reason}${hint}`, {
    statusCode,
  })
}
