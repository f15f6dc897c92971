import { isJsonObject, parseJson, type JsonObject } from '../../internal/json.js'

/** Arguments of a tool call; when `error` says why they could not be read, `args` is empty. */
export interface ParsedArguments {
  readonly args: JsonObject
  readonly error: string | null
}

/**
 * Reads the arguments of a tool call in every form that providers send: an object, JSON text of an
 * object, that text encoded once more as a JSON string, or nothing when there are no arguments.
 * Invalid JSON is never repaired: half a command may be a different command.
 */
export function parseArguments(raw: unknown): ParsedArguments {
  if (raw === undefined || raw === null) return { args: {}, error: null }
  if (isJsonObject(raw)) return { args: raw, error: null }
  if (typeof raw !== 'string')
    return unreadable(`they are ${Array.isArray(raw) ? 'a list' : typeof raw}`)
  if (raw.trim() === '') return { args: {}, error: null }
  let value = parseJson(raw)
  if (typeof value === 'string') value = parseJson(value)
  if (value === undefined) return unreadable('they are not valid JSON')
  if (value === null) return { args: {}, error: null }
  if (isJsonObject(value)) return { args: value, error: null }
  return unreadable(`they are ${Array.isArray(value) ? 'a list' : `a ${typeof value}`}`)
}

function unreadable(why: string): ParsedArguments {
  const what = `the arguments could not be read: ${why}. Nothing was run.`
  const error = `${what} Call the tool again with one JSON object.`
  return { args: {}, error }
}
