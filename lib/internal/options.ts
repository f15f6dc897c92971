/**
 * The check of every options object: its names, the kinds of its values, and what is missing.
 * Ranges and forms are checked where a value is used.
 *
 * @module
 */
import { nearestName } from './text.js'

type Kind<V> =
  unknown extends V ? 'any'
  : [V] extends [boolean] ? 'boolean'
  : [V] extends [number] ? 'number'
  : [V] extends [string] ? 'string'
  : [V] extends [(...args: never[]) => unknown] ? 'function'
  : [V] extends [readonly unknown[]] ? 'array'
  : [V] extends [object] ? (IsUnion<V> extends true ? 'any' : 'object')
  : 'any'

type IsUnion<V, All = V> = V extends All ? ([All] extends [V] ? false : true) : never

type OrNull<K extends string, V> = K extends 'any' ? K : null extends V ? `${K}|null` : K

type KindOf<V> = OrNull<Kind<Exclude<V, null | undefined>>, V>

/**
 * What each option of `T` must be. The compiler wants all names of `T` and no others, and the kind
 * that the type has. A required option also says what to pass: `string! the path of a folder`.
 */
export type OptionKinds<T> = {
  readonly [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K>
    ? KindOf<T[K]>
    : `${KindOf<T[K]>}! ${string}`
}

/** Names in other libraries, in lower case, and the options for it here, in whatever takes them. */
const FOREIGN_NAMES: Readonly<Record<string, string>> = {
  agent: 'connect',
  apikey: 'key',
  body: 'json, data, content, files',
  ca: 'verify, tls',
  cors: 'allowedOrigins',
  dir: 'directory',
  dnslookup: 'lookup',
  folder: 'directory',
  form: 'data',
  formdata: 'data, files',
  handler: 'execute',
  handleprotocols: 'protocols',
  hooks: 'eventHooks',
  inputschema: 'parameters',
  interceptors: 'eventHooks',
  keepalive: 'limits',
  maxpayload: 'maxMessageBytes',
  maxretries: 'retries, retry',
  path: 'directory, basePath',
  permessagedeflate: 'deflate',
  port: 'listen() of your own server',
  prefix: 'basePath',
  prefixurl: 'baseUrl',
  qs: 'params',
  query: 'params',
  redirect: 'followRedirects',
  rejectunauthorized: 'verify, tls',
  responsetype: 'stream() or the response itself',
  run: 'execute',
  schema: 'parameters',
  searchparams: 'params',
  server: 'attach(server)',
  socket: 'socketPath',
  throwhttperrors: 'raiseForStatus',
  uds: 'socketPath',
  url: 'baseUrl',
  validatestatus: 'raiseForStatus',
  verifyclient: 'authorize',
}

/**
 * Refuses what is no set of options: another value than an object, a name that is no option, a
 * value of the wrong kind, a required option that is missing. Names count even if their value is
 * undefined, and if they are inherited; symbols do not.
 *
 * @param of - what takes the options: a call such as `new FileStore()`, or an option, `retry`.
 * @throws TypeError naming the option and, where it can be guessed, the one that is meant.
 */
export function checkOptions<T>(given: unknown, kinds: OptionKinds<T>, of: string): void {
  const known = kinds as Readonly<Record<string, string>>
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const what = isPath(of) ? of : `the options of ${of}`
    throw new TypeError(`${what} must be an object, got ${describeValue(given)}`)
  }
  const options = given as Readonly<Record<string, unknown>>
  for (const name in options) {
    const kind = known[name]
    if (typeof kind !== 'string') refuseName(options, name, Object.keys(known), of)
    else if (!fits(kind, options[name])) {
      const what = isPath(of) ? `${of}.${name}` : name
      const got = describeValue(options[name])
      throw new TypeError(`${what} must be ${describeKind(kind)}, got ${got}`)
    }
  }
  for (const name of requiredNames(known)) {
    if (options[name] !== undefined) continue
    throw new TypeError(`${of} needs ${name}: ${describeKind(known[name]!)}`)
  }
}

/** @throws TypeError when an argument that must be a string, named `what`, is none. */
export function checkString(what: string, value: unknown): void {
  if (typeof value === 'string') return
  throw new TypeError(`${what} must be a string, got ${describeValue(value)}`)
}

/** @throws TypeError when an argument that must be an object, named `what`, is none. */
export function checkObject(what: string, value: unknown): void {
  if (typeof value === 'object' && value !== null) return
  throw new TypeError(`${what} must be an object, got ${describeValue(value)}`)
}

/** What a value is, for messages: never its text, which may be a secret. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Whether the options are an option themselves, `timeout` or `webhooks.endpoints[0]`. */
function isPath(of: string): boolean {
  return /^[a-z][A-Za-z]*(\[\d+\])?(\.[A-Za-z]+(\[\d+\])?)*$/.test(of)
}

function refuseName(options: object, name: string, known: readonly string[], of: string): void {
  // Whatever a program has added to all objects was not meant as an option.
  if (!Object.hasOwn(options, name) && name in Object.prototype) return
  const what = isPath(of) ? `${of}.${name} is not an option` : `${name} is not an option of ${of}`
  const meant = foreignName(name, known) ?? nearestName(name, known)
  const hint = meant === undefined ? `the options are ${known.join(', ')}` : `use ${meant}`
  throw new TypeError(`${what}; ${hint}`)
}

function foreignName(name: string, known: readonly string[]): string | undefined {
  const plain = name.toLowerCase().replaceAll('_', '')
  if (known.some((own) => own.toLowerCase() === plain)) return undefined
  const ours = Object.hasOwn(FOREIGN_NAMES, plain) ? FOREIGN_NAMES[plain]! : ''
  if (ours.includes('(')) return ours
  return ours.split(', ').filter((own) => known.includes(own)).join(' or ') || undefined
}

function fits(kind: string, value: unknown): boolean {
  if (kind === 'any' || value === undefined) return true
  const type = typeof value
  // A number is not NaN if it equals itself.
  if (type === kind) return value === value && value !== null
  const base = /^[a-z]+/.exec(kind)![0]
  if (base === 'any') return true
  if (value === null) return kind.startsWith('|null', base.length)
  if (base === 'array') return Array.isArray(value)
  if (base === 'object') return type === 'object' || type === 'function'
  return type === base && !Number.isNaN(value)
}

const KINDS: Readonly<Record<string, string>> = {
  array: 'an array',
  boolean: 'true or false',
  function: 'a function',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}

function describeKind(kind: string): string {
  const [, base, orNull, , hint] = /^([a-z]+)(\|null)?(! (.*))?$/s.exec(kind)!
  return hint ?? `${KINDS[base!]}${orNull === undefined ? '' : ' or null'}`
}

const required = new WeakMap<object, readonly string[]>()

function requiredNames(kinds: Readonly<Record<string, string>>): readonly string[] {
  const names = required.get(kinds)
  if (names !== undefined) return names
  const found = Object.keys(kinds).filter((name) => kinds[name]!.includes('!'))
  required.set(kinds, found)
  return found
}
