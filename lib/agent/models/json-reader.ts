/**
 * Reads values from untrusted JSON: a value of another type reads as an empty one.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'

const EMPTY: JsonObject = {}

/** `value` if it is an object, else an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : EMPTY
}

/** `value` if it is an array, else an empty array. */
export function listOf(value: unknown): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : []
}

/** `value` if it is a string, else an empty string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `value` rounded down if it is a positive finite number, else 0. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? Math.floor(value) : 0
}

/** `value` if it is a finite number that is not negative, else undefined. */
export function amountOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined
}
