/**
 * Reads values out of JSON that somebody else wrote: what is not as expected reads as nothing.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'

const NOTHING: JsonObject = {}

/** `value` as an object; an empty one when it is none. */
export function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : NOTHING
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
