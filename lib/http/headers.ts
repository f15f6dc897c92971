import { checkOptions, type OptionKinds } from '../internal/options.js'
import { inspect } from 'node:util'
import { LocalProtocolError } from './errors.js'
import { trimBlanks } from './field-values.js'
import { printAs } from './inspect.js'
import { redactUrl } from './url.js'

const LIST_OPTIONS: OptionKinds<{ splitCommas?: boolean }> = { splitCommas: 'boolean' }

/**
 * Headers to begin with. An array repeats the field, `undefined` skips it, and `null` removes an
 * inherited one.
 */
export type HeadersInit =
  | Headers
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | number | readonly string[] | null | undefined>>

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const FORBIDDEN_IN_VALUE = /[\0-\x08\x0a-\x1f\x7f]/

/** A word that makes a field's value a secret: Authorization, X-Auth-Token, X-SessionId, … */
const SECRET_WORD = new RegExp(
  '(?:^|[-_])(?:assertion|authentication|authorization|bearer|cert|certificate|clientcert|' +
    'cookie2|dpop|hmac|macaroons?|nonce|oidc|otp|pass|passcode|passphrase|passwd|pwd|saml|sid|' +
    'sig|sign|signature|ticket|totp|' +
    '[a-z]*(?:auth|cookie|credentials?|jwt|key|password|secret|session|sessionid|token)' +
    ')(?:$|[-_])',
)
/** Fields that have such a word and no secret. */
const NO_SECRETS = new Set([
  'content-signature',
  'idempotency-key',
  'sec-websocket-key',
  'surrogate-key',
  'x-idempotency-key',
])

/** Fields whose values are or contain URLs. */
const URL_FIELDS = new Set(['location', 'content-location', 'referer', 'link', 'refresh'])

/** Printed in place of a secret. */
export const MASK = '[secret]'

/**
 * Whether fields of this name hold secrets: they are masked when printed, not sent to another
 * origin by a redirect, and never added to the compression state of HTTP/2.
 */
export function isSensitiveHeader(name: string): boolean {
  const key = name.toLowerCase()
  return SECRET_WORD.test(key) && !NO_SECRETS.has(key)
}

/** @throws {@link LocalProtocolError} when `name` is not a token (RFC 9110, section 5.1). */
function checkHeaderName(name: string): void {
  if (!TOKEN.test(name)) {
    throw new LocalProtocolError(`invalid header name ${JSON.stringify(name)}: it must be a token`)
  }
}

/** Returns `value` without outer blanks; throws on CR, LF, NUL and other control characters. */
function checkedValue(name: string, value: string): string {
  if (FORBIDDEN_IN_VALUE.test(value)) {
    throw new LocalProtocolError(
      `the value of header ${name} contains a line break or another control character`,
    )
  }
  // Blanks and tabs only: other space is part of the value (RFC 9110, section 5.5).
  return trimBlanks(value)
}

/** @throws TypeError when `values` is not a list of strings. */
function checkedList(name: string, values: unknown): readonly string[] {
  const at = Array.isArray(values) ? values.findIndex((value) => typeof value !== 'string') : null
  if (at === -1) return values as string[]
  const wrong: unknown = at === null ? values : (values as unknown[])[at]
  const got = wrong === null ? 'null' : typeof wrong
  throw new TypeError(
    `the value of header ${name} must be a string, a number or a list of strings, got ${got}`,
  )
}

/** The fields of headers. Copies of headers share them until one of the copies changes. */
class Fields {
  readonly names: string[]
  /** The names in lower case. */
  readonly keys: string[]
  readonly values: string[]
  shared = false
  /** The fields as lines, kept once they are shared: those of a client are sent many times. */
  lines: string | null = null

  constructor(names: string[], keys: string[], values: string[]) {
    this.names = names
    this.keys = keys
    this.values = values
  }

  copy(): Fields {
    return new Fields(this.names.slice(), this.keys.slice(), this.values.slice())
  }
}

/**
 * A multi-map of header fields: names are case-insensitive, their order and case are kept, and a
 * name may occur more than once (RFC 9110, section 5).
 *
 * Names and values are checked when they are set, so that no field can break out of its line.
 * Printing and `toJSON()` mask credentials and cookies.
 */
export class Headers implements Iterable<[string, string]> {
  #fields: Fields
  #alsoSensitive: ReadonlySet<string> | undefined

  /** @throws {@link LocalProtocolError} on an invalid name or value. */
  constructor(init?: HeadersInit | null) {
    if (init instanceof Headers) {
      this.#fields = init.#fields
      this.#fields.shared = true
      this.#alsoSensitive = init.#alsoSensitive
      return
    }
    this.#fields = new Fields([], [], [])
    if (init === undefined || init === null) return
    if (typeof init !== 'object') {
      throw new TypeError(`headers must be an object, pairs or Headers, got ${typeof init}`)
    } else if (Symbol.iterator in init) {
      for (const field of init) {
        if (!Array.isArray(field)) {
          throw new TypeError(`headers must be pairs of name and value, got ${typeof field}`)
        }
        this.append(field[0] as string, field[1] as string)
      }
    } else {
      for (const [name, value] of Object.entries(init)) {
        if (value === undefined || value === null) continue
        if (typeof value === 'string') this.append(name, value)
        else if (typeof value === 'number') this.append(name, String(value))
        else for (const member of checkedList(name, value)) this.append(name, member)
      }
    }
  }

  /** Takes fields that a parser has checked: name, value, name, value, … @internal */
  static fromWire(flat: readonly string[]): Headers {
    const headers = new Headers()
    for (let i = 0; i < flat.length; i += 2) {
      headers.#push(flat[i]!, flat[i]!.toLowerCase(), flat[i + 1]!)
    }
    return headers
  }

  /** Marks these names, in lower case, as secret too; copies keep the marks. @internal */
  maskAlso(names: ReadonlySet<string>): this {
    const marked = this.#alsoSensitive
    if (names.size > 0 && names !== marked) {
      this.#alsoSensitive = marked === undefined ? names : new Set([...marked, ...names])
    }
    return this
  }

  /** The number of fields, counting repeated names each time. */
  get size(): number {
    return this.#fields.keys.length
  }

  /** The fields as `[name, value]`, in the order and case in which they are sent. */
  get raw(): [string, string][] {
    const { names, values } = this.#fields
    return names.map((name, i) => [name, values[i]!])
  }

  /** All values of `name` joined by ", ", or null if there is none. */
  get(name: string): string | null {
    const key = name.toLowerCase()
    const { keys, values } = this.#fields
    const first = keys.indexOf(key)
    if (first === -1) return null
    if (keys.indexOf(key, first + 1) === -1) return values[first]!
    return this.getList(key).join(', ')
  }

  /** The values of `name`, one per field; with `splitCommas`, one per list member. */
  getList(name: string, options: { readonly splitCommas?: boolean } = {}): string[] {
    checkOptions(options, LIST_OPTIONS, 'getList()')
    const key = name.toLowerCase()
    const { keys, values } = this.#fields
    const found: string[] = []
    for (let i = keys.indexOf(key); i !== -1; i = keys.indexOf(key, i + 1)) found.push(values[i]!)
    if (options.splitCommas !== true) return found
    return found.flatMap((value) => value.split(',').map((part) => part.trim()))
  }

  /** Whether a field has this name, in any case. */
  has(name: string): boolean {
    return this.#fields.keys.includes(name.toLowerCase())
  }

  /** Replaces all fields of this name with one, at the position of the first. */
  set(name: string, value: string): void {
    checkHeaderName(name)
    const checked = checkedValue(name, String(value))
    const key = name.toLowerCase()
    const first = this.#fields.keys.indexOf(key)
    if (first === -1) {
      this.#push(name, key, checked)
      return
    }
    const { names, keys, values } = this.#own()
    names[first] = name
    values[first] = checked
    for (let i = keys.lastIndexOf(key); i > first; i = keys.lastIndexOf(key)) this.#remove(i)
  }

  /** Adds the field unless there is one of this name. */
  setDefault(name: string, value: string): void {
    if (!this.has(name)) this.append(name, value)
  }

  /** Adds a field, keeping others of the same name. */
  append(name: string, value: string): void {
    checkHeaderName(name)
    this.#push(name, name.toLowerCase(), checkedValue(name, String(value)))
  }

  /** Removes all fields of this name. Returns whether there were any. */
  delete(name: string): boolean {
    const key = name.toLowerCase()
    if (!this.#fields.keys.includes(key)) return false
    const { keys } = this.#own()
    for (let i = keys.indexOf(key); i !== -1; i = keys.indexOf(key, i)) this.#remove(i)
    return true
  }

  /**
   * Sets every field of `other`. Fields that it repeats stay repeated. In an object, `null` removes
   * the field of that name, and `undefined` keeps it.
   */
  update(other: HeadersInit): void {
    if (!(other instanceof Headers) && !(Symbol.iterator in Object(other))) {
      for (const [name, value] of Object.entries(other)) if (value === null) this.delete(name)
    }
    const from = other instanceof Headers ? other : new Headers(other)
    const { names, keys } = from.#fields
    for (const key of new Set(keys)) {
      const values = from.getList(key)
      this.set(names[keys.indexOf(key)]!, values[0]!)
      for (const value of values.slice(1)) this.append(key, value)
    }
  }

  /** The fields whose values printing masks, sorted by name. @internal */
  secretFields(): [string, string][] {
    const secret = [...this].filter(([key]) => this.#isSecret(key))
    return secret.sort(([a], [b]) => (a < b ? -1 : a === b ? 0 : 1))
  }

  /** Removes every field that printing masks, in whole or in part. @internal */
  deleteSecrets(): void {
    for (const key of new Set(this.#fields.keys)) {
      if (this.#printed(key) !== this.get(key)) this.delete(key)
    }
  }

  /** `[name, value]` of every field in order, names in lower case. */
  *[Symbol.iterator](): Generator<[string, string], void, undefined> {
    for (let i = 0; i < this.size; i++) yield [this.#fields.keys[i]!, this.#fields.values[i]!]
  }

  /** Calls `each` for every field in order, names in lower case. @internal */
  visit(each: (key: string, value: string) => void): void {
    for (let i = 0; i < this.size; i++) each(this.#fields.keys[i]!, this.#fields.values[i]!)
  }

  /** The fields with their joined values; credentials and cookies, also in URLs, are masked. */
  toJSON(): Record<string, string> {
    const shown: Record<string, string> = {}
    for (const key of new Set(this.#fields.keys)) shown[key] = this.#printed(key)
    return shown
  }

  #isSecret(key: string): boolean {
    return isSensitiveHeader(key) || this.#alsoSensitive?.has(key) === true
  }

  #printed(key: string): string {
    if (this.#isSecret(key)) return MASK
    const value = this.get(key)!
    return URL_FIELDS.has(key) ? redactUrl(value) : value
  }

  static {
    printAs(Headers, (self, options) => {
      return `Headers ${inspect(self.toJSON(), options)}`
    })
  }

  /** The fields as lines of an HTTP/1.1 head. @internal */
  toLines(): string {
    const { names, values, shared, lines } = this.#fields
    if (lines !== null) return lines
    let text = ''
    for (let i = 0; i < names.length; i++) text += names[i]! + ': ' + values[i]! + '\r\n'
    if (shared) this.#fields.lines = text
    return text
  }

  /** The fields, to be changed. */
  #own(): Fields {
    return this.#fields.shared ? (this.#fields = this.#fields.copy()) : this.#fields
  }

  #push(name: string, key: string, value: string): void {
    const { names, keys, values } = this.#own()
    names.push(name)
    keys.push(key)
    values.push(value)
  }

  #remove(index: number): void {
    const { names, keys, values } = this.#fields
    names.splice(index, 1)
    keys.splice(index, 1)
    values.splice(index, 1)
  }
}
