import { credentials, REDACTED } from './credentials.js'

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
