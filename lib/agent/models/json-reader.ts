/**
 * Reads values out of JSON that somebody else wrote: what is not as expected reads as nothing.
 *
 * @module
 */
import type { JsonObject, JsonValue } from '../../internal/json.js'

const NOTHING: JsonObject = {}

/** `value` as an object; an empty one when it is none. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : NOTHING
}

/** Whether `value` is a JSON object: no array, not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `value` as a list; an empty one when it is none. */
export function listOf(value: unknown): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : []
}

/** `value` as text; empty when it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `value` as a count: a whole number from 0; 0 when it is none. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? Math.floor(value) : 0
}

/** The JSON that `text` is, or undefined when it is none. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
