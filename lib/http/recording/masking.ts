import { credentials } from '../../internal/credentials.js'
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
    'shared|signing|subscription)-key|token|jwt|secret|passphrase|credentials?|authorization|' +
    'cookie|assertion|signature|code-verifier|otp)$|passw(?:or)?d|(?:^|-)pwd(?:$|-)',
)

/** A string, and the one behind a colon that follows it. The end of the text ends a string too. */
const JSON_STRING = /"((?:[^"\\]|\\.)*)"?(?:(\s{0,9}:\s{0,9})"((?:[^"\\]|\\.)*)"?)?/gs

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
    return headers.raw.map(([name, value]) => {
      const key = name.toLowerCase()
      const masked = shown[key] === MASK
      if (key === 'cookie') return { name, value: this.#cookies(value) }
      if (key === 'set-cookie') return { name, value: this.#setCookie(value) }
      if (!masked)
        return { name, value: shown[key] === headers.get(key) ? value : redactUrl(value) }
      // The credentials behind the name of a scheme may appear by themselves.
      for (const part of value.split(/[\s,]+/)) this.#note(part)
      this.#note(value)
      return { name, value: MASK }
    })
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
      .map((pair) => this.#pair(pair))
      .join('&')
    const masked = query === null ? path : `${path}?${pairs}`
    return this.all(masked).replaceAll(MASK, URL_MASK)
  }

  /** A body: the values of fields with secret names. */
  body(text: string, type: string): string {
    if (/^application\/x-www-form-urlencoded\b/i.test(type)) {
      return text
        .split('&')
        .map((pair) => this.#pair(pair))
        .join('&')
    }
    return /^multipart\/form-data\b/i.test(type) ? this.#multipart(text) : this.#json(text)
  }

  /** `text` without the secrets found so far, and those that this process was given. */
  all(text: string): string {
    const { secrets, values } = credentials()
    let masked = text
    for (const secret of [...this.#found, ...secrets, ...values]) {
      if (secret.length >= MIN_SECRET && masked.includes(secret))
        masked = masked.replaceAll(secret, MASK)
    }
    return masked
  }

  #note(secret: string): void {
    if (secret.length < MIN_SECRET || secret === MASK || secret === URL_MASK) return
    if (this.#found.size < MAX_SECRETS) this.#found.add(secret)
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
  #pair(pair: string): string {
    const [name, value] = splitAt(pair, '=')
    if (value === null || value === '' || value === URL_MASK) return pair
    const [[key, plain] = ['', '']] = [...new URLSearchParams(pair)]
    if (!isSecretField(key) && redactUrl(`?${key}=x`) === `?${key}=x`) return pair
    this.#note(plain)
    return `${name}=${URL_MASK}`
  }

  /** Works on any text, so that event streams, JSON lines and broken JSON are masked too. */
  #json(text: string): string {
    return text.replace(JSON_STRING, (whole, name: string, colon?: string, value = '') => {
      if (colon === undefined || value === '' || value === MASK || !isSecretField(name))
        return whole
      this.#note(value)
      return `"${name}"${colon}"${MASK}"`
    })
  }

  #multipart(text: string): string {
    const [first] = splitAt(text, '\r\n')
    if (!first.startsWith('--')) return text
    return text
      .split(first)
      .map((part) => {
        const [head, content] = splitAt(part, '\r\n\r\n')
        const name = /;\s*name="([^"]*)"/i.exec(head)?.[1] ?? ''
        if (content === null || !isSecretField(name)) return part
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
