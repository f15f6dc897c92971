import { InvalidBodyError } from '../errors.js'
import { bytesBody, type Body } from './body.js'

/**
 * `value` as compact JSON, by the rules of `JSON.stringify()`: a key whose value is undefined is
 * left out, undefined in an array becomes null, and `toJSON()` is called. Other values that it
 * would change or drop in silence are errors: NaN, Infinity, functions, symbols; BigInt and cycles
 * are too.
 *
 * @throws {@link InvalidBodyError} naming the path, as in `json.items[2].price is NaN`.
 */
export function jsonBody(value: unknown): Body {
  const problem = findUnjsonable(value, '', 'json', [])
  if (problem !== null) throw new InvalidBodyError(problem)
  const text = JSON.stringify(value) as string | undefined
  // The option is set, so its body must not be dropped as a whole.
  if (text === undefined) throw new InvalidBodyError('json is undefined, by its toJSON()')
  return bytesBody(Buffer.from(text), 'application/json')
}

/**
 * Describes the first value that JSON cannot represent, by its path; null if there is none.
 *
 * @param key - For `toJSON()`.
 */
function findUnjsonable(value: unknown, key: string, at: string, above: object[]): string | null {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return null
    case 'number':
      return Number.isFinite(value) ? null : `${at} is ${value}, which JSON cannot represent`
    case 'bigint':
      if ('toJSON' in BigInt.prototype) return findInObject(Object(value) as object, key, at, above)
      return `${at} is a BigInt, which JSON cannot represent; send it as a string or a number`
    case 'function':
    case 'symbol':
      return `${at} is a ${typeof value}, which JSON cannot represent`
    default:
      return value === null ? null : findInObject(value as object, key, at, above)
  }
}

function findInObject(value: object, key: string, at: string, above: object[]): string | null {
  if (above.includes(value)) return `${at} contains itself, which JSON cannot represent`
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const result: unknown = value.toJSON(key)
    // What it returns is written as it is, without another toJSON(); it may return itself.
    if (result === value) return findInside(value, at, above)
    const over = [...above, value]
    if (typeof result !== 'object' || result === null) return findUnjsonable(result, key, at, over)
    return findInside(result, at, over)
  }
  return findInside(value, at, above)
}

function findInside(value: object, at: string, above: object[]): string | null {
  if (isBoxed(value)) return findUnjsonable(value.valueOf(), '', at, above)
  above.push(value)
  let problem: string | null = null
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && problem === null; i++) {
      const item: unknown = value[i]
      if (typeof item !== 'string') problem = findUnjsonable(item, String(i), '', above)
      if (problem !== null) problem = `${at}[${i}]${problem}`
    }
  } else {
    for (const name of Object.keys(value)) {
      const item = (value as Record<string, unknown>)[name]
      if (name === 'toJSON' && typeof item === 'function') continue
      if (typeof item !== 'string') problem = findUnjsonable(item, name, '', above)
      if (problem !== null) {
        problem = `${at}.${name}${problem}`
        break
      }
    }
  }
  above.pop()
  return problem
}

function isBoxed(value: object): boolean {
  return [Number, String, Boolean, BigInt].some((type) => value instanceof type)
}
