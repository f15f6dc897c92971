import type { JsonSchema } from 'runwright/agent'

/** Texts that cannot be stored. */
export const UNSTORABLE: readonly string[] = [
  '\0', 'a\0b', '\ud800', 'a\udc80b', '\udfff', '🙂'.slice(0, 1),
]
/** Texts that look odd, and can. */
export const ODD: readonly string[] = ['\ufffe', '🙂', '\u202eabc\u2066', '\ufeff', '\u0001\u2028']

/** A place in a value where a text stands, or the name of a field. */
export interface TextPlace {
  /** JSON Pointer to the text, or to the object with the name. */
  readonly pointer: string
  /** A value that matches the schema as far as that goes, with this text there. */
  readonly with: (text: string) => unknown
}

/** Every place of a text in the values of a schema, those that it leaves open included. */
export function textPlaces(schema: JsonSchema | boolean): readonly TextPlace[] {
  if (typeof schema === 'boolean') return schema ? OPEN : []
  const { type, properties, items, anyOf, minLength = 0 } = schema
  if (anyOf !== undefined) return anyOf.flatMap(textPlaces)
  if (type === 'string') {
    return [{ pointer: '', with: (text) => text.padEnd(minLength, 'x') }]
  }
  if (type === 'array')
    return inside(textPlaces(items ?? true), '/0', (item) => [item, ...sampleItems(schema, 1)])
  if (type !== 'object') return []
  const others = schema.additionalProperties ?? properties === undefined
  return [
    ...Object.entries(properties ?? {}).flatMap(([name, field]) =>
      inside(textPlaces(field), `/${name}`, (value) => ({
        ...sampleFields(schema), [name]: value,
      })),
    ),
    ...inside(textPlaces(others), '/more', (value) => ({ ...sampleFields(schema), more: value })),
    ...(others === false
      ? []
      : [{
          pointer: '',
          with: (text: string) => ({ ...sampleFields(schema), [text]: sample(others) }),
        }]),
  ]
}

/** Of a value that may be anything. */
const OPEN: readonly TextPlace[] = [
  { pointer: '', with: (text) => text },
  { pointer: '/deep/0/er', with: (text) => ({ deep: [{ er: text }] }) },
  { pointer: '/deep', with: (text) => ({ deep: { [text]: 1 } }) },
]

function inside(
  places: readonly TextPlace[],
  pointer: string,
  wrap: (value: unknown) => unknown,
): TextPlace[] {
  return places.map((place) => ({
    pointer: `${pointer}${place.pointer}`,
    with: (text) => wrap(place.with(text)),
  }))
}

/** A value that matches the schema, as small as can be. */
function sample(schema: JsonSchema | boolean): unknown {
  if (typeof schema === 'boolean') return 1
  const { type, anyOf, minimum = 0, minLength = 0 } = schema
  if (anyOf !== undefined) return sample(anyOf[0]!)
  if (schema.enum !== undefined) return schema.enum[0]
  if (type === 'string') return 'x'.repeat(minLength)
  if (type === 'array') return sampleItems(schema, 0)
  if (type === 'object') return sampleFields(schema)
  return type === 'boolean' ? true : minimum
}

function sampleItems({ items = true, minItems = 0 }: JsonSchema, from: number): unknown[] {
  return Array.from({ length: Math.max(0, minItems - from) }, () => sample(items))
}

function sampleFields({ properties = {}, required = [] }: JsonSchema): Record<string, unknown> {
  return Object.fromEntries(required.map((name) => [name, sample(properties[name] ?? true)]))
}
