import { trimBlanks } from '../field-values.js'
import type { Headers } from '../headers.js'

/** Seconds from here on mean "for ever" (RFC 9111, section 1.2.2). */
export const MAX_SECONDS: number = 2 ** 31

/** Stands for an argument that is none, and equals nothing that a header can hold. */
const MALFORMED = '\0'

/**
 * The directives of Cache-Control (RFC 9111, section 5.2). What cannot be understood counts in the
 * safe direction: a directive with a malformed argument is present, and its time is 0.
 */
export class CacheDirectives {
  readonly #arguments = new Map<string, string[]>()

  constructor(headers: Headers) {
    // Line by line: a quotation mark that is never closed must not hide the lines after it.
    for (const line of headers.getList('cache-control')) this.#add(line)
  }

  has(name: string): boolean {
    return this.#arguments.has(name)
  }

  /** Whether the directive is there without an argument, and so applies to the whole response. */
  isBare(name: string): boolean {
    return this.#arguments.get(name)?.includes('') === true
  }

  /** The time of a directive in ms: null without it, 0 if it is malformed or contradictory. */
  milliseconds(name: string): number | null {
    const values = this.#arguments.get(name)
    if (values === undefined) return null
    const seconds = new Set(values.map((value) => (/^[0-9]+$/.test(value) ? Number(value) : 0)))
    if (seconds.size > 1) return 0
    return Math.min(...seconds, MAX_SECONDS) * 1000
  }

  /** The field names, in lower case, that a directive such as `no-cache="a, b"` lists. */
  fields(name: string): string[] {
    const values = this.#arguments.get(name) ?? []
    return values.flatMap((value) => value.toLowerCase().split(',').map((part) => trimBlanks(part)))
  }

  #add(line: string): void {
    for (const part of splitOutsideQuotes(line)) {
      // The name is read leniently, so that `no-store;` still forbids storing.
      const name = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+/.exec(part)?.[0]
      if (name === undefined) continue
      const key = name.toLowerCase()
      const values = this.#arguments.get(key) ?? []
      values.push(argumentOf(part.slice(name.length)))
      this.#arguments.set(key, values)
    }
  }
}

function argumentOf(rest: string): string {
  if (rest === '') return ''
  const token = /^=([!#$%&*+\-.^_`|~0-9A-Za-z]+)$/.exec(rest)?.[1]
  if (token !== undefined) return token
  const quoted = /^="((?:[^"\\]|\\.)*)"$/s.exec(rest)?.[1]
  return quoted === undefined ? MALFORMED : quoted.replaceAll(/\\(.)/gs, '$1')
}

/** The members of a list, without blanks around them; quoted commas separate nothing. */
function splitOutsideQuotes(line: string): string[] {
  const parts: string[] = []
  let start = 0
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '"') {
      const end = closingQuote(line, i)
      // Without a closing mark no later one has a partner either, and all are plain characters.
      if (end === -1) {
        return [...parts, ...line.slice(start).split(',').map((part) => trimBlanks(part))]
      }
      i = end
    } else if (line[i] === ',') {
      parts.push(trimBlanks(line.slice(start, i)))
      start = i + 1
    }
  }
  return [...parts, trimBlanks(line.slice(start))]
}

function closingQuote(line: string, open: number): number {
  for (let i = open + 1; i < line.length; i++) {
    if (line[i] === '\\') i++
    else if (line[i] === '"') return i
  }
  return -1
}
