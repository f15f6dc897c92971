/**
 * The rules of keywords that apply schemas, or look at several items or fields (JSON Schema Core
 * 2020-12, sections 10 and 11).
 *
 * @module
 */
import type { Check, Rule, SchemaNode } from './check.js'
import { describe, describeAny, quote, unknownField } from './describe.js'
import type { Matcher } from './linear-pattern.js'
import { ANY_TYPE, firstTwins, hasType, isObject, typeOf, type Values } from './values.js'

type Nodes = readonly SchemaNode[]
type Fields = Readonly<Record<string, unknown>>

/** A rule for values of one type; others fit. */
function on<T extends keyof Values>(
  type: T,
  rule: (value: Values[T], check: Check) => boolean,
): Rule {
  return (value, check) => typeOf(value) !== type || rule(value as Values[T], check)
}

export function countFields(value: Fields, check: Check): number {
  const count = Object.keys(value).length
  check.spend(count >> 4)
  return count
}

export function hasMatch(pattern: Matcher, text: string, check: Check): boolean {
  return check.spend(Math.floor((text.length * pattern.cost) / 64)) && pattern.test(text)
}

// Other schemas for the same value.

export function allOf(branches: Nodes): Rule {
  return (value, check) => check.all(branches, (branch) => check.apply(branch, value))
}

export function anyOf(branches: Nodes): Rule {
  return (value, check) => {
    let valid = false
    for (const branch of branches) {
      valid = check.accepts(branch, value) || valid
      // All branches count for what was seen.
      if (valid && check.seen === null) return true
    }
    return valid || failBranches(branches, value, check)
  }
}

export function oneOf(branches: Nodes): Rule {
  return (value, check) => {
    const matching: SchemaNode[] = []
    for (const branch of branches) {
      if (check.accepts(branch, value)) matching.push(branch)
      if (matching.length === 2) {
        const both = (): string => matching.map((one) => describe(one.schema, value)).join(' and ')
        return check.fail(() => `must match one alternative only, got ${both()} at once`)
      }
    }
    return matching.length === 1 || failBranches(branches, value, check)
  }
}

/** Reports on the branch that was meant, if that can be told. */
function failBranches(branches: Nodes, value: unknown, check: Check): false {
  if (check.isLost) return false
  const meant = meantBranch(branches, value, check)
  if (meant !== undefined) return check.apply(meant, value) && false
  const expected = describeAny(branches.map((branch) => target(branch).schema))
  return check.fail(() => `must be ${expected}, got ${quote(value)}`)
}

/** The only branch that has the value's type, or the constants that the value has. */
function meantBranch(branches: Nodes, value: unknown, check: Check): SchemaNode | undefined {
  const ofType = branches.filter((branch) => {
    const { isFalse, types } = target(branch)
    return !isFalse && (types === ANY_TYPE || hasType(types, value))
  })
  const tagged = (branch: SchemaNode): boolean => {
    const tags = [...(target(branch).links.get('properties') ?? [])].filter(
      ([name, { schema }]) =>
        (schema.const !== undefined || schema.enum !== undefined) &&
        Object.hasOwn(value as Fields, name),
    )
    const fits = tags.every(([name, tag]) => check.accepts(tag, (value as Fields)[name], true))
    return tags.length > 0 && fits
  }
  const meant = ofType.length > 1 && isObject(value) ? ofType.filter(tagged) : ofType
  return meant.length === 1 ? meant[0] : undefined
}

/** What a schema that is only a reference stands for. */
function target(node: SchemaNode): SchemaNode {
  const { type, properties } = node.schema
  const next = type === undefined && properties === undefined ? node.link('$ref') : undefined
  return next === undefined ? node : target(next)
}

export function not(part: SchemaNode): Rule {
  return (value, check) =>
    !check.accepts(part, value) ||
    check.fail(() => `must not be ${describe(part.schema, value)}, got ${quote(value)}`)
}

export function conditional(condition: SchemaNode, node: SchemaNode): Rule {
  return (value, check) => {
    const next = node.link(check.accepts(condition, value) ? 'then' : 'else')
    return next === undefined || check.apply(next, value)
  }
}

export function dependentSchemas(parts: ReadonlyMap<string, SchemaNode>): Rule {
  const list = [...parts]
  return on('object', (value, check) => {
    check.spend(list.length >> 4)
    return check.all(list, ([name, part]) => {
      return !Object.hasOwn(value, name) || check.apply(part, value)
    })
  })
}

// Items.

/** The keywords that go through the items of a list by their place. */
export function items(_: unknown, node: SchemaNode): Rule {
  const first = [...(node.links.get('prefixItems')?.values() ?? [])]
  const rest = node.link('items')
  return on('array', (value, check) => {
    let valid = true
    const end = rest === undefined ? Math.min(first.length, value.length) : value.length
    for (let i = 0; i < end; i++) {
      check.seen?.push(String(i))
      const part = i < first.length ? first[i]! : rest!
      valid = check.applyTo(part, value[i], i) && valid
      if (!valid && check.isLost) return false
    }
    return valid
  })
}

export function contains(part: SchemaNode, { schema }: SchemaNode): Rule {
  const { minContains: least = 1, maxContains: most = Infinity } = schema
  const limit = most === Infinity ? '' : ` and at most ${most}`
  const amount = least === 0 ? `at most ${most}` : `at least ${least}${limit}`
  return on('array', (value, check) => {
    let count = 0
    for (let i = 0; i < value.length && !check.isTooLarge; i++) {
      if (!check.accepts(part, value[i], true)) continue
      count += 1
      check.seen?.push(String(i))
      if (check.seen === null && count >= least && most === Infinity) return true
    }
    if (count >= least && count <= most) return true
    const wanted = (): string => `${amount} of these items: ${describe(part.schema)}`
    return check.fail(() => `must have ${wanted()}; got ${count}`)
  })
}

export const uniqueItems: Rule = on('array', (value, check) => {
  const twins = firstTwins(value, (values) => check.spend(values))
  if (twins === null) return true
  const both = twins.join(' and ')
  return check.fail(() => `must not have the same item twice: items ${both} are equal`)
})

// Fields.

export function required(names: readonly string[]): Rule {
  return on('object', (value, check) => {
    let valid = true
    for (const name of names) {
      if (Object.hasOwn(value, name)) continue
      valid = check.fail(() => 'is required', name)
      if (check.isLost) return false
    }
    return valid
  })
}

export function dependentRequired(lists: Readonly<Record<string, readonly string[]>>): Rule {
  const pairs = Object.entries(lists).flatMap(([name, needed]) => {
    return needed.map((other) => [name, other] as const)
  })
  return on('object', (value, check) => {
    check.spend(pairs.length >> 4)
    return check.all(pairs, ([name, other]) => {
      const fits = !Object.hasOwn(value, name) || Object.hasOwn(value, other)
      return fits || check.fail(() => `is required beside ${name}`, other)
    })
  })
}

/** The keywords that go through the fields of an object: together they decide which are known. */
export function fields(
  _: unknown,
  node: SchemaNode,
  matcher: (source: string, keyword: string) => Matcher,
): Rule {
  const properties = node.links.get('properties')
  const patterns = [...(node.links.get('patternProperties') ?? [])].map(
    ([source, part]) => [matcher(source, 'patternProperties'), part] as const,
  )
  const rest = node.link('additionalProperties')
  const names = node.link('propertyNames')
  return on('object', (value, check) => {
    let valid = true
    for (const name in value) {
      if (!Object.hasOwn(value, name)) continue
      if (names !== undefined) valid = fitsName(names, name, check) && valid
      const part = properties?.get(name)
      let isKnown = part !== undefined
      if (part === undefined) check.spend(1)
      else valid = check.applyTo(part, value[name], name) && valid
      for (const [pattern, ruled] of patterns) {
        check.spend(1)
        if (!hasMatch(pattern, name, check)) continue
        isKnown = true
        valid = check.applyTo(ruled, value[name], name) && valid
      }
      if (isKnown || rest !== undefined) check.seen?.push(name)
      if (!isKnown && rest !== undefined) valid = applyRest(rest, value, name, node, check) && valid
      if (check.isOver || (!valid && check.isLost)) return false
    }
    return valid
  })
}

function fitsName(names: SchemaNode, name: string, check: Check): boolean {
  if (check.accepts(names, name, true)) return true
  const expected = (): string => describe(names.schema, name)
  return check.fail(() => `has a name that is not allowed: it must be ${expected()}`, name)
}

/** Applies a schema to a part that `node` says nothing else about. */
function applyRest(
  rest: SchemaNode,
  value: Fields,
  name: string,
  node: SchemaNode,
  check: Check,
): boolean {
  if (!rest.isFalse || Array.isArray(value)) return check.applyTo(rest, value[name], name)
  return check.fail(() => unknownField(name, knownFields(node)), name)
}

/** A rule for the items of a list, or for the fields of an object. */
export function unevaluated(
  is: (value: unknown) => boolean,
): (part: SchemaNode, node: SchemaNode) => Rule {
  return (part, node) => (value, check) => {
    if (!is(value)) return true
    const seen = new Set(check.seen?.slice(check.seenBefore))
    return check.all(Object.keys(value as Fields), (name) => {
      if (seen.has(name)) return true
      check.seen?.push(name)
      return !check.isOver && applyRest(part, value as Fields, name, node, check)
    })
  }
}

/** Names of fields that the schema, and those that it applies to the same object, know. */
function knownFields(node: SchemaNode): readonly string[] {
  const names = new Set<string>()
  const visited = new Set<SchemaNode>()
  const collect = (one: SchemaNode): void => {
    if (visited.has(one) || visited.size > 100) return
    visited.add(one)
    for (const name of one.links.get('properties')?.keys() ?? []) names.add(name)
    one.sameValue.forEach(collect)
  }
  collect(node)
  return [...names]
}
