import { MAX_JSON_DEPTH } from './json.js'

/** Levels of a record that are looked at: those of a value from outside, and its record's own. */
export const MAX_RECORD_DEPTH: number = 2 * MAX_JSON_DEPTH

type Form = (text: string) => string

/**
 * A value with `form` of each text in it, names of fields included; the same object if that changes
 * nothing, since most values need no copy. `tooDeep` stands for what is nested too deep to be
 * looked at.
 */
export function mapTexts<T>(value: T, form: Form, tooDeep: string): T {
  return mapPart(value, form, tooDeep, 0) as T
}

function mapPart(part: unknown, form: Form, tooDeep: string, depth: number): unknown {
  if (typeof part === 'string') return form(part)
  if (typeof part !== 'object' || part === null) return part
  if (depth > MAX_RECORD_DEPTH) return tooDeep
  if (Array.isArray(part)) return mapItems(part, form, tooDeep, depth + 1)
  return mapFields(part as Fields, form, tooDeep, depth + 1)
}

function mapItems(
  items: readonly unknown[],
  form: Form,
  tooDeep: string,
  depth: number,
): readonly unknown[] {
  let mapped: unknown[] | undefined
  for (let i = 0; i < items.length; i++) {
    const item = mapPart(items[i], form, tooDeep, depth)
    if (item !== items[i]) (mapped ??= [...items])[i] = item
  }
  return mapped ?? items
}

interface Fields {
  readonly [name: string]: unknown
}

function mapFields(fields: Fields, form: Form, tooDeep: string, depth: number): Fields {
  const names = Object.keys(fields)
  let mapped: [name: string, field: unknown][] | undefined
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!
    const [newName, field] = [form(name), mapPart(fields[name], form, tooDeep, depth)]
    if (mapped === undefined && newName === name && field === fields[name]) continue
    mapped ??= names.slice(0, i).map((same) => [same, fields[same]])
    mapped.push([newName, field])
  }
  return mapped === undefined ? fields : Object.fromEntries(mapped)
}
