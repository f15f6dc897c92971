/**
 * Reads query parameters. An invalid value or an unknown parameter is a 422 that names it: without
 * the parameter that was meant, a caller would get more than it asked for.
 *
 * @module
 */
import { checkSchema, type JsonSchema } from '../../agent/index.js'
import { isStorable, MUST_BE_STORABLE, nearestName } from '../../internal/text.js'
import { invalidField, type ProblemError } from '../errors.js'

/** A parameter as the description of a route has it. */
interface KnownParameter {
  readonly name: string
  readonly in: 'query' | 'header'
  readonly repeated?: boolean
  readonly prefix?: boolean
}

/**
 * Checks the names of a query, and that its texts are storable. `allowed` are the host's own.
 *
 * @throws 422
 */
export function checkQuery(
  query: URLSearchParams,
  parameters: readonly KnownParameter[],
  allowed: ReadonlySet<string>,
): void {
  const known = parameters.filter((parameter) => parameter.in === 'query')
  const given = new Set<string>()
  for (const [name, value] of query) {
    if (allowed.has(name)) continue
    const parameter = known.find((one) =>
      one.prefix === true ? name.startsWith(`${one.name}.`) : one.name === name,
    )
    if (parameter === undefined) throw unknownParameter(name, known)
    if (!isStorable(`${name}${value}`)) throw invalid(parameter.name, MUST_BE_STORABLE)
    if (parameter.repeated !== true && given.has(name)) throw givenTwice(name)
    given.add(name)
  }
}

function unknownParameter(name: string, known: readonly KnownParameter[]): ProblemError {
  const names = known.map(({ name, prefix }) => (prefix === true ? `${name}.<name>` : name))
  const meant = nearestName(name, names)
  const others = names.length === 0 ? 'there are none' : `there are ${names.join(', ')}`
  const hint = meant === undefined ? others : `did you mean ${meant}?`
  const [violation] = checkSchema({ additionalProperties: false }, { [name]: '' })
  const pointer = violation?.pointer ?? ''
  return invalidField(pointer, `is not a known query parameter; ${hint}`, 'query')
}

function invalid(name: string, detail: string): ProblemError {
  return invalidField(`/${name}`, detail, 'query')
}

function givenTwice(name: string): ProblemError {
  return invalid(name, 'must be given once')
}

/** The value of a parameter; undefined when absent. @throws 422 when it is given twice */
export function readText(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name)
  if (values.length > 1) throw givenTwice(name)
  return values[0]
}

/**
 * The values of all parameters whose names begin with `name` and a dot, by the rest of their names;
 * undefined when there is none. @throws 422 when one is given twice, or there are more than `max`
 */
export function readNamed(
  query: URLSearchParams,
  name: string,
  max: number,
): Readonly<Record<string, string>> | undefined {
  const given = [...query].filter(([one]) => one.startsWith(`${name}.`))
  if (given.length === 0) return undefined
  if (given.length > max) throw invalid(name, `may be given for at most ${max} names`)
  // What a name is in the metadata of a run, such as __proto__, it is here.
  return Object.fromEntries(given.map(([one, value]) => [one.slice(name.length + 1), value]))
}

/** The same for a value that must not be empty: that is never meant. @throws 422 */
export function readValue(query: URLSearchParams, name: string): string | undefined {
  const text = readText(query, name)
  return text === undefined ? undefined : checked(name, { type: 'string', minLength: 1 }, text)
}

/** An integer from `min` to `max`; undefined when absent. @throws 422 */
export function readInteger(
  query: URLSearchParams,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const text = readText(query, name)
  if (text === undefined) return undefined
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : text
  return checked(name, { type: 'integer', minimum: min, maximum: max }, value)
}

/** Values of a repeatable parameter, each one of `known`. @throws 422 */
export function readChoices<T extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly T[],
): T[] {
  return query.getAll(name).map((value) => choose(name, value, known))
}

/** One of `known`; undefined when absent. @throws 422 */
export function readChoice<T extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly T[],
): T | undefined {
  const text = readText(query, name)
  return text === undefined ? undefined : choose(name, text, known)
}

/** Values of a comma-separated parameter, each one of `known`. @throws 422 */
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

/** An RFC 3339 time with an offset, as seconds since the epoch. @throws 422 */
export function readTime(query: URLSearchParams, name: string): number | undefined {
  const text = readText(query, name)
  if (text === undefined) return undefined
  // A `+` that was not percent-encoded arrives as a space.
  const repaired = text.replace(/ (?=\d\d:\d\d$)/, '+')
  const ms = DATE_TIME.test(repaired) && isDay(repaired) ? Date.parse(repaired) : NaN
  if (!Number.isNaN(ms)) return ms / 1000
  throw invalid(name, 'must be a time like 2026-01-31T12:00:00Z')
}

/** False for days such as 31 February, which `Date` reads as a day in March. */
function isDay(time: string): boolean {
  const day = time.slice(0, 10)
  const ms = Date.parse(day)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day)
}

function choose<T extends string>(name: string, value: string, known: readonly T[]): T {
  return checked(name, { enum: known }, value)
}

/** What it says about a value is redacted. @throws 422 */
function checked<T>(name: string, schema: JsonSchema, value: unknown): T {
  const [violation] = checkSchema(schema, value)
  if (violation !== undefined) throw invalid(name, violation.detail)
  return value as T
}
