/**
 * Errors and warnings, described without secrets.
 *
 * @module
 */
import { constants } from 'node:os'
import { escapeInvisible } from './text.js'

/**
 * What this process was given as a credential: keys of callers and providers, secrets of webhooks,
 * variables and headers of tool servers, secrets that the host names. The agent's redaction masks
 * them in whatever is written.
 *
 * There is one register for the process, and not one for each engine: keys of callers and secrets
 * of webhooks are made before and outside an engine, tool servers and HTTP errors know none, and a
 * key that one engine was given must not appear in the log of another one either. It is reachable
 * by no object that could be printed, and nothing is ever removed but by newer rotating values.
 */

/** Replaces a secret in any text. */
export const REDACTED = '[secret removed]'

/** Folders at the top of a file system. */
const TOP_FOLDER = new RegExp(
  '^/(?:app|applications|bin|boot|data|dev|etc|home|lib|lib64|library|media|mnt|nix|opt|private|' +
    'proc|root|run|sbin|snap|srv|sys|tmp|users|usr|var|volumes|work|workspace)(?:/|$)',
  'i',
)

/** Values that a function returned, kept at a time: the newest ones are in use. */
const MAX_ROTATING = 256

/** Masked whatever they are. */
const secrets = new Set<string>()
/** Masked unless they are ordinary words. */
const fixed = new Set<string>()
const rotating = new Set<string>()
/** Names of variables by their value, for values that must not be masked everywhere. */
const named = new Map<string, Set<string>>()
let changes = 0

/** Adds a text that the host has called a secret. */
export function addSecret(value: string): void {
  if (value === '' || secrets.has(value)) return
  secrets.add(value)
  changes += 1
}

/** Adds a credential that stays in use as long as the process. */
export function addCredential(value: string): void {
  if (value === '' || fixed.has(value)) return
  fixed.add(value)
  changes += 1
}

/** Adds a value that a newer one will replace, such as the result of a function. */
export function addRotatingCredential(value: string): void {
  if (value === '' || fixed.has(value)) return
  // Deleted and added again, it is the newest.
  if (!rotating.delete(value)) changes += 1
  rotating.add(value)
  if (rotating.size > MAX_ROTATING) rotating.delete(rotating.values().next().value!)
}

/** Adds a value under the name of a variable, behind which even an ordinary word is masked. */
export function addNamedCredential(name: string, value: string): void {
  const names = named.get(value) ?? new Set<string>()
  if (value === '' || names.has(name)) return
  named.set(value, names.add(name))
  changes += 1
}

/** A number that changes with the register. */
export function credentialChanges(): number {
  return changes
}

/**
 * True for a value that also stands in texts that have nothing to do with a secret: fewer than 8
 * characters, a word or two of 15 letters (as dummy keys of local servers), a number, an address, a
 * path.
 */
export function isOrdinary(value: string): boolean {
  if (value.length < 8) return true
  if (value.length <= 15) {
    if (/^[A-Za-z]?(?:[a-z]+|[A-Z]+)$/.test(value)) return true
    if (/^[a-z]+[-_. /][a-z]+$/.test(value) || /^[\d.,:+-]+$/.test(value)) return true
    if (/^[a-z.-]+:\d{1,5}$/.test(value)) return true
  }
  if (/^(?:~|\.\.?)[/\\]|^[A-Za-z]:[/\\]/.test(value)) return true
  return TOP_FOLDER.test(value) || /^\/[a-z][a-z./_-]*$/.test(value)
}

/** All secrets, the other values except ordinary words, and the named variables. */
export function credentials(): {
  readonly secrets: readonly string[]
  readonly values: readonly string[]
  readonly named: readonly (readonly [name: string, value: string])[]
} {
  return {
    secrets: [...secrets],
    values: [...fixed, ...rotating].filter((value) => !isOrdinary(value)),
    named: [...named].flatMap(([value, names]) => [...names].map((name) => [name, value] as const)),
  }
}

/** Errors that cause each other, or are parts of one; more are not shown. */
const MAX_CAUSES = 8
const MAX_LENGTH = 8_192
/** Messages of errors of the agent say all that there is to say. */
const OWN = /^ERR_AGENT_|^$/

/**
 * Says what was thrown, whatever that is: the message, the code if it says more than the message,
 * and what caused it, likewise. What this process was given as a credential is masked. It never
 * throws.
 */
export function describeError(thrown: unknown): string {
  const texts = [describeOne(thrown)]
  let cause = fieldOf(thrown, 'cause')
  for (let depth = 1; depth < MAX_CAUSES && cause !== undefined && cause !== null; depth++) {
    const text = describeOne(cause)
    // Messages often quote that of the cause.
    if (!texts.some((shown) => shown.includes(text))) texts.push(text)
    cause = fieldOf(cause, 'cause')
  }
  return texts.join(': ').slice(0, MAX_LENGTH)
}

/** The error itself if it is one that can be read, else one that says what was thrown. */
export function asError(thrown: unknown): Error {
  return isReadable(thrown) ? thrown : new Error(describeError(thrown))
}

function describeOne(thrown: unknown, isPart = false): string {
  if (typeof thrown === 'function') return 'a function was thrown'
  if (typeof thrown !== 'object' || thrown === null) return shorten(String(thrown))
  const code = fieldOf(thrown, 'code')
  const parts = fieldOf(thrown, 'errors')
  const [text = 'a value that is not an error was thrown'] = [
    fieldOf(thrown, 'message'),
    // Of several attempts to connect, Node says nothing but what became of each.
    isPart || !Array.isArray(parts) ? '' : describeParts(parts),
    fieldOf(thrown, 'name'),
  ].filter((found) => typeof found === 'string' && found !== '')
  const shown = shorten(String(text))
  const saysMore = typeof code === 'string' && !OWN.test(code) && !shown.includes(code)
  return saysMore ? `${shown} (${code})` : shown
}

function describeParts(parts: readonly unknown[]): string {
  const texts = parts.slice(0, MAX_CAUSES).map((part) => describeOne(part, true))
  return [...new Set(texts)].join('; ')
}

/** A field of whatever was thrown, which may refuse to be read. */
export function fieldOf(thrown: unknown, name: string): unknown {
  try {
    return (thrown as Record<string, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }
}

function isReadable(thrown: unknown): thrown is Error {
  try {
    if (!(thrown instanceof Error)) return false
    const { name, message, stack = '' } = thrown
    return [name, message, stack].every((text) => typeof text === 'string')
  } catch {
    return false
  }
}

/** Masks credentials, then cuts the text: a cut could leave a part of one. */
function shorten(text: string): string {
  const { secrets, values } = credentials()
  // A credential may begin with a shorter one.
  const longestFirst = [...secrets, ...values].sort((a, b) => b.length - a.length)
  let shown = text
  for (const secret of longestFirst) shown = shown.replaceAll(secret, REDACTED)
  return shown.slice(0, MAX_LENGTH)
}

/** On Linux, codes that Node names nowhere. */
const LINUX: Readonly<Record<string, number>> = { EUCLEAN: 117, ENOMEDIUM: 123 }

/** By the code that Node makes up for errors of the system that it does not know. */
const names: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...(process.platform === 'linux' && LINUX),
    ...constants.errno,
  }).map(([name, number]) => [`Unknown system error ${-number}`, name]),
)

/** The `code` of an error of the system, by the name that manuals use; undefined without one. */
export function systemCode(error: unknown): string | undefined {
  const code = fieldOf(error, 'code')
  return typeof code === 'string' ? (names.get(code) ?? code) : undefined
}

/** A process warning, which Node prints: what came from outside cannot control the terminal. */
export function warn(message: string, options: { type?: string; code?: string } = {}): void {
  process.emitWarning(escapeInvisible(message), options)
}
