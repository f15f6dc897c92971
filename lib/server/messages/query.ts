/**
 * Reading of query parameters. A parameter that is there but not usable is a 422 that names it;
 * parameters that nobody knows are left alone.
 *
 * @module
 */
import { invalidField, type ProblemError } from '../errors.js'

function bad(name: string, detail: string): ProblemError {
  return invalidField(`/${name}`, detail, 'query')
}

/** The one value of a parameter; undefined when it is absent. @throws 422 when it comes twice. */
export function readText(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name)
  if (values.length > 1) throw bad(name, 'must be given once')
  return values[0]
}

/** A whole number from `least` to `most`. @throws 422 */
export function readInteger(
  query: URLSearchParams,
  name: string,
  least: number,
  most: number,
): number | undefined {
  const text = readText(query, name)
  if (text === undefined) return undefined
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : NaN
  if (value >= least && value <= most) return value
  throw bad(name, `must be a whole number from ${least} to ${most}, got ${quote(text)}`)
}

/** Values of a repeatable parameter, each one of `known`. @throws 422 */
export function readChoices<T extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly T[],
): T[] {
  return query.getAll(name).map((value) => choose(name, value, known))
}

/** Values of a parameter that is a list with commas, each one of `known`. @throws 422 */
export function readList<T extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly T[],
): ReadonlySet<T> | undefined {
  const text = readText(query, name)
  if (text === undefined) return undefined
  return new Set(text.split(',').map((value) => choose(name, value.trim(), known)))
}

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** An RFC 3339 time with its offset, as seconds since the epoch. @throws 422 */
export function readTime(query: URLSearchParams, name: string): number | undefined {
  const text = readText(query, name)
  if (text === undefined) return undefined
  // A `+` that was not percent-encoded arrives as a space.
  const repaired = text.replace(/ (?=\d\d:\d\d$)/, '+')
  const ms = DATE_TIME.test(repaired) && isDay(repaired) ? Date.parse(repaired) : NaN
  if (!Number.isNaN(ms)) return ms / 1000
  throw bad(name, `must be a time like 2026-01-31T12:00:00Z, got ${quote(text)}`)
}

/** False for the 31st of February, which `Date` takes for a day in March. */
function isDay(time: string): boolean {
  const day = time.slice(0, 10)
  const ms = Date.parse(day)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day)
}

function choose<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((candidate) => candidate === value)
  if (found !== undefined) return found
  throw bad(name, `must be one of ${known.join(', ')}, got ${quote(value)}`)
}

/** Longest part of a value that an error repeats. */
const MAX_QUOTED = 60

function quote(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text)
}
