/**
 * Where references of one schema document lead (JSON Schema Core 2020-12, sections 8.2 and 9):
 * resources by `$id`, parts by `$anchor` or JSON Pointer. Nothing is ever loaded.
 *
 * @module
 */
import { isObject } from './values.js'

export type RawSchema = Readonly<Record<string, unknown>>

/** The base of a document without `$id`. */
export const OWN_BASE = 'schema:///'

/** What a reference leads to; `base` is the resource that it belongs to. */
export interface Target {
  readonly schema: unknown
  readonly base: string
}

export class Documents {
  readonly #resources = new Map<string, RawSchema>()
  readonly #anchors = new Map<string, Target>()

  /** Adds a resource; false when another one has this address. */
  addResource(base: string, schema: RawSchema): boolean {
    const other = this.#resources.get(base)
    this.#resources.set(base, schema)
    return other === undefined || other === schema
  }

  /** Adds an anchor; false when another part has it. */
  addAnchor(base: string, name: string, schema: RawSchema): boolean {
    const address = `${base}#${name}`
    const other = this.#anchors.get(address)
    this.#anchors.set(address, { schema, base })
    return other === undefined || other.schema === schema
  }

  /** What `reference` means in the resource `base`; null when it is nowhere in the document. */
  find(reference: string, base: string): Target | null {
    const mark = reference.indexOf('#')
    const address = resolve(mark === -1 ? reference : reference.slice(0, mark), base)
    const resource = address === null ? undefined : this.#resources.get(address)
    if (address === null || resource === undefined) return null
    const fragment = mark === -1 ? '' : decoded(reference.slice(mark + 1))
    if (fragment === null) return null
    if (fragment === '') return { schema: resource, base: address }
    if (!fragment.startsWith('/')) return this.#anchors.get(`${address}#${fragment}`) ?? null
    return follow(resource, address, fragment)
  }
}

/** An address made absolute, without fragment; null when it is none. */
export function resolve(address: string, base: string): string | null {
  if (address === '') return base
  try {
    return new URL(address, base).href
  } catch {
    return null
  }
}

function decoded(fragment: string): string | null {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return null
  }
}

/** RFC 6901. A part with an `$id` on the way is a resource of its own. */
function follow(resource: RawSchema, base: string, pointer: string): Target | null {
  let at: unknown = resource
  let current = base
  for (const step of pointer.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return null
    if (at !== resource && isObject(at) && typeof at['$id'] === 'string') {
      current = resolve(at['$id'].replace(/#$/, ''), current) ?? current
    }
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!Object.hasOwn(at, name)) return null
    at = (at as RawSchema)[name]
  }
  return { schema: at, base: current }
}
