/**
 * Registers what this process is given as a credential beside other settings: in headers, variables
 * of a program, its arguments, an address.
 *
 * @module
 */
import { addCredential } from '../../internal/errors.js'
import { valuesInContext } from './contexts.js'
import { secretsOfEnvironment } from './environment.js'

const SECRET_HEADER = /auth|key|token|secret|cookie|session|password/i
const FLAG = /^--?([\w-]+)(?:=(.+))?$/s
const SECRET_FLAG = /key|token|secret|password|passwd|auth|credential/i
/** Schemes of `Authorization`, whose name is no secret. */
const SCHEME = /^(?:basic|bearer|token|negotiate|apikey)\s+(\S.*)$/is

/** True for a text that nobody would write by hand: a key, whatever its name. */
function looksRandom(text: string): boolean {
  if (!/^[\w+/=.~-]{16,}$/.test(text)) return false
  return /^[0-9a-f]{32,}$/i.test(text) || [/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(text))
}

/** Headers that are sent with every request. */
export function addHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (SECRET_HEADER.test(name)) addHeaderValue(value)
    else if (looksRandom(value)) addCredential(value)
  }
}

/** The value of a header that authorizes a request. */
function addHeaderValue(value: string): void {
  const bare = SCHEME.exec(value)?.[1]?.trim() ?? value
  addCredential(bare)
  if (!/^basic\s/i.test(value)) return
  const [, password] = /^[^:]*:(.+)$/s.exec(Buffer.from(bare, 'base64').toString()) ?? []
  if (password !== undefined) addCredential(password)
}

/** Variables that a program gets. */
export function addVariables(env: Readonly<Record<string, string>>): void {
  for (const value of secretsOfEnvironment(env, valuesInContext).values) addCredential(value)
  for (const value of Object.values(env)) if (looksRandom(value)) addCredential(value)
}

/** Arguments of a program: the values of flags such as `--token`. */
export function addArguments(args: readonly string[]): void {
  for (const [i, arg] of args.entries()) {
    for (const value of valuesInContext(arg)) addCredential(value)
    const flag = FLAG.exec(arg)
    if (flag !== null && SECRET_FLAG.test(flag[1]!)) addCredential(flag[2] ?? args[i + 1] ?? '')
  }
}

/** What a model provider is reached with. */
export function addEndpoint(options: {
  readonly apiKey?: string | undefined
  readonly baseUrl?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}): void {
  const { apiKey = '', baseUrl = '', headers = {} } = options
  addCredential(apiKey)
  addHeaders(headers)
  addAddress(baseUrl)
}

/** An address: its password, and the values of its query that look like keys. */
export function addAddress(address: string): void {
  if (!URL.canParse(address)) return
  const url = new URL(address)
  if (url.password !== '') {
    addCredential(url.password)
    addCredential(decoded(url.password))
  }
  for (const [name, value] of url.searchParams)
    if (SECRET_HEADER.test(name) || looksRandom(value)) addCredential(value)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
