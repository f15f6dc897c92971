import { isJsonObject, parseJson, plainCopy, type JsonObject } from '../../internal/json.js'

/** Arguments of a tool call; when `error` says why they could not be read, `args` is empty. */
export interface ParsedArguments {
  readonly args: JsonObject
  readonly error: string | null
}

/** Characters of the arguments of one call, as JSON: more than any model can write at once. */
const MAX_CHARACTERS = 4 * 1024 * 1024

/**
 * Reads the arguments of a tool call in every form that providers send: an object, JSON text of an
 * object, that text encoded once more as a JSON string, or nothing when there are no arguments.
 * Invalid JSON is never repaired: half a command may be a different command. The result is a plain
 * copy of bounded depth and size.
 */
export function parseArguments(raw: unknown): ParsedArguments {
  if (raw === undefined || raw === null) return { args: {}, error: null }
  if (isJsonObject(raw)) return bounded(raw)
  if (typeof raw !== 'string')
    return unreadable(`they are ${Array.isArray(raw) ? 'a list' : typeof raw}`)
  if (raw.trim() === '') return { args: {}, error: null }
  let value = parseJson(raw)
  if (typeof value === 'string') value = parseJson(value)
  if (value === undefined) return unreadable('they are not valid JSON')
  if (value === null) return { args: {}, error: null }
  if (isJsonObject(value)) return bounded(value)
  return unreadable(`they are ${Array.isArray(value) ? 'a list' : `a ${typeof value}`}`)
}

function bounded(args: JsonObject): ParsedArguments {
  const copy = plainCopy(args, MAX_CHARACTERS, true)
  if (copy.problem === null) return { args: copy.value as JsonObject, error: null }
  return unreadable(`their value ${copy.problem}`)
}

function unreadable(why: string): ParsedArguments {
  const what = `the arguments could not be read: ${why}. Nothing was run.`
  const error = `${what} Call the tool again with one JSON object.`
  return { args: {}, error }
}
