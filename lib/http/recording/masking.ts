import { credentials } from '../../internal/errors.js'
import { MASK, type Headers } from '../headers.js'
import { redactUrl } from '../url.js'
import type { HarPair } from './har.js'

/** Values shorter than this are masked where they were found, not wherever they occur. */
const MIN_SECRET = 8
const MAX_SECRETS = 1000
/** {@link MASK} in a URL. */
const URL_MASK = encodeURIComponent(MASK)

/** The end of a field's name, in words joined by "-", that makes its value a secret. */
const SECRET_FIELD = new RegExp(
  '(?:^|-)(?:apikey|(?:api|access|account|auth|client|encryption|master|private|secret|session|' +
    'shared|signing|subscription)-key|token|jwt|secret|pass(?:phrase|code)?|bearer|credentials?|' +
    'authorization|cookie|assertion|signature|code-verifier|otp)$|passw(?:or)?d|(?:^|-)pwd(?:$|-)',
)

/** A string, and what is behind a colon that follows it. The end of the text ends a string too. */
const JSON_STRING = /"((?:[^"\\]|\\.)*)"?(?:(\s{0,9}:\s{0,9})(?:"((?:[^"\\]|\\.)*)"?|[[{])?)?/gs
/** `name=value` of a URL or form within a text. */
const TEXT_PAIR = /(?<![^?&#"'])[\w.%[\]-]{1,64}=[^&#\s"'<>\\]+/g
/** User name and password of a URL within a text. */
const TEXT_USER = /:\/\/[^\s"'<>\\/?#@]+@/g
/** A JSON Web Token: two JSON objects and a signature. */
const JWT = /(?<![\w-])eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*/g
const MULTIPART = /^multipart\/form-data\b/i
/** Texts within strings within texts are masked down to this depth. */
const MAX_DEPTH = 4

/** Whether a field of a body, of this name, holds a secret: `client_secret`, `accessToken`, … */
export function isSecretField(name: string): boolean {
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1-$2').replace(/[_.\s]/g, '-')
  return SECRET_FIELD.test(words.toLowerCase())
}

/**
 * Masks what a recording must not contain. A secret that is found in one place, such as a header,
 * is masked in all others too, and in later exchanges.
 */
export class Masker {
  readonly #found = new Set<string>()

  /** Header fields, in the order and case in which they are sent. */
  headers(headers: Headers): HarPair[] {
    const shown = headers.toJSON()
    const pairs = headers.raw.map(([name, value]) => {
      const key = name.toLowerCase()
      const masked = shown[key] === MASK
      if (key === 'cookie') return { name, value: this.#cookies(value) }
      if (key === 'set-cookie') return { name, value: this.#setCookie(value) }
      if (!masked)
        return { name, value: shown[key] === headers.get(key) ? value : redactUrl(value) }
      // The credentials behind the name of a scheme may appear by themselves.
      for (const part of value.split(/[\s,]+/)) this.#note(part)
      this.#note(value)
      const basic = /^basic +(\S+)$/i.exec(value)?.[1]
      if (basic !== undefined)
        this.#note(splitAt(Buffer.from(basic, 'base64').toString(), ':')[1] ?? '')
      return { name, value: MASK }
    })
    return pairs.map(({ name, value }) => ({ name, value: this.all(value) }))
  }

  /** The URL without fragment and user name; values of secret keys are masked. */
  url(url: URL | string): string {
    const plain = new URL(url)
    this.#note(plain.password)
    plain.username = ''
    plain.password = ''
    plain.hash = ''
    const [path, query] = splitAt(plain.href, '?')
    const pairs = query
      ?.split('&')
      .map((pair) => this.#pair(pair, 0))
      .join('&')
    const masked = query === null ? path : `${path}?${pairs}`
    return this.all(masked).replaceAll(MASK, URL_MASK)
  }

  /** A body: the values of fields with secret names. */
  body(text: string, type: string): string {
    if (/^application\/x-www-form-urlencoded\b/i.test(type)) {
      return text
        .split('&')
        .map((pair) => this.#pair(pair, 0))
        .join('&')
    }
    return MULTIPART.test(type) ? this.#multipart(text) : this.#text(text, 0)
  }

  /** A body that is no text: its text parts, and the secrets found so far. */
  bytes(body: Uint8Array, type: string): Buffer {
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
    const fields = MULTIPART.test(type) ? this.#multipart(text) : text
    const masked = this.all(fields, (secret) => Buffer.from(secret).toString('latin1'))
    return Buffer.from(masked, 'latin1')
  }

  /**
   * `text` without the secrets found so far, those that this process was given, and JSON Web
   * Tokens.
   *
   * @param encoded - A secret as it would stand in `text`.
   */
  all(text: string, encoded = (secret: string): string => secret): string {
    const { secrets, values } = credentials()
    let masked = text.replace(JWT, MASK)
    for (const secret of [...this.#found, ...secrets, ...values]) {
      const part = encoded(secret)
      if (secret.length >= MIN_SECRET && masked.includes(part))
        masked = masked.replaceAll(part, MASK)
    }
    return masked
  }

  /** Remembers a secret as it is, in URLs and in JSON. */
  #note(secret: string): void {
    if (secret.length < MIN_SECRET || secret === MASK || secret === URL_MASK) return
    if (this.#found.size >= MAX_SECRETS) return
    const inUrl = encodeURIComponent(Buffer.from(secret).toString())
    for (const form of [secret, inUrl, jsonOf(secret)]) this.#found.add(form)
  }

  #cookies(value: string): string {
    return value
      .split(/;\s*/)
      .map((pair) => this.#cookie(pair))
      .join('; ')
  }

  /** Keeps name and attributes, so that a client that replays it has a cookie too. */
  #setCookie(field: string): string {
    const [pair, attributes] = splitAt(field, ';')
    return this.#cookie(pair) + (attributes === null ? '' : `;${attributes}`)
  }

  #cookie(pair: string): string {
    const [name, value] = splitAt(pair, '=')
    this.#note((value ?? name).trim())
    return value === null ? MASK : value === '' ? pair : `${name}=${MASK}`
  }

  /** `name=value`, URL-encoded. */
  #pair(pair: string, depth: number): string {
    const [name, value] = splitAt(pair, '=')
    if (value === null || value === '' || value === URL_MASK) return pair
    const [[key, plain] = ['', '']] = [...new URLSearchParams(pair)]
    if (!isSecretField(key) && redactUrl(`?${key}=x`) === `?${key}=x`) {
      const masked = this.#text(plain, depth + 1)
      return masked === plain ? pair : `${name}=${encodeURIComponent(masked)}`
    }
    this.#note(plain)
    return `${name}=${URL_MASK}`
  }

  /** Works on any text, so that event streams, JSON lines and broken JSON are masked too. */
  #text(text: string, depth: number): string {
    if (depth > MAX_DEPTH) return text
    return this.#json(text, depth)
      .replace(TEXT_PAIR, (pair) => this.#pair(pair, depth))
      .replace(TEXT_USER, `://${URL_MASK}@`)
  }

  #json(text: string, depth: number): string {
    // Where the value of a secret field ends that is an array or object.
    let end = 0
    return text.replace(
      JSON_STRING,
      (whole, name: string, colon: string | undefined, value: string | undefined, at: number) => {
        const quote = (shown: string): string =>
          colon === undefined ? `"${shown}"` : `"${name}"${colon}"${shown}"`
        const inner = colon === undefined ? name : value
        const secret = colon !== undefined && isSecretField(plainOf(name))
        if (inner === undefined) {
          if (secret && at >= end && /[[{]$/.test(whole)) end = endOf(text, at + whole.length)
          return whole
        }
        if (inner === '' || inner === MASK) return whole
        if (at < end) return quote(MASK)
        if (!secret) {
          if (!inner.includes('\\')) return whole
          const plain = plainOf(inner)
          const masked = this.#text(plain, depth + 1)
          return masked === plain ? whole : quote(jsonOf(masked))
        }
        this.#note(plainOf(inner))
        return quote(MASK)
      },
    )
  }

  #multipart(text: string): string {
    const [first] = splitAt(text, '\r\n')
    if (!first.startsWith('--')) return text
    return text
      .split(first)
      .map((part) => {
        const [head, content] = splitAt(part, '\r\n\r\n')
        if (content === null) return part
        const [, quoted, name = quoted] = /;\s*name=(?:"([^"]*)"|([^\s;"]+))/i.exec(head) ?? []
        if (!isSecretField(name ?? '')) return `${head}\r\n\r\n${this.#text(content, 1)}`
        this.#note(content.replace(/\r\n$/, ''))
        return `${head}\r\n\r\n${MASK}\r\n`
      })
      .join(first)
  }
}

/** What is before the first `mark`, and what after it; null without one. */
export function splitAt(text: string, mark: string): [before: string, after: string | null] {
  const at = text.indexOf(mark)
  return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + mark.length)]
}

/** `text` as it is between the quotes of a JSON string. */
function jsonOf(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** What is between the quotes of a JSON string, decoded if it can be. */
function plainOf(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/** Where the JSON array or object ends whose content starts at `from`. */
function endOf(text: string, from: number): number {
  let depth = 1
  const token = /"(?:[^"\\]|\\.)*"?|[[\]{}]/gs
  token.lastIndex = from
  while (depth > 0) {
    const match = token.exec(text)
    if (match === null) return text.length
    if (match[0] === '[' || match[0] === '{') depth++
    else if (match[0] === ']' || match[0] === '}') depth--
  }
  return token.lastIndex
}
