import type { Declaration } from '../outline.js'
import type { SourceFile } from '../source.js'

/** A name that can be used at some place of a file. */
export interface ScopeName {
  readonly name: string
  readonly kind: Declaration['kind']
  /** 0 when declared in the innermost function, 1 in the one around it; 9 at the top level. */
  readonly depth: number
  /** Called somewhere, or declared as a function or class. */
  readonly isFunction: boolean
  /** Declared in a function that never uses it: somewhere, it is probably missing. */
  readonly isUnused: boolean
  /** Token that declares it. */
  readonly token: number
}

export interface Scope {
  /** Innermost first, then by declaration. */
  readonly names: readonly ScopeName[]
  readonly byName: ReadonlyMap<string, ScopeName>
}

interface FileScopes {
  /** Index of the innermost function around each token, or -1. */
  readonly functionOf: Int32Array
  readonly parents: Int32Array
  readonly declared: ReadonlySet<string>
  readonly declarations: ReadonlyMap<number, readonly Declaration[]>
  readonly positions: ReadonlyMap<string, readonly number[]>
  readonly called: ReadonlySet<string>
  readonly scopes: Map<number, Scope>
}

const TOP = 9
const known = new WeakMap<SourceFile, FileScopes>()

function scopesOf(file: SourceFile): FileScopes {
  const before = known.get(file)
  if (before !== undefined) return before
  const { tokens, regions } = file
  const functionOf = new Int32Array(tokens.length).fill(-1)
  const parents = new Int32Array(regions.length).fill(-1)
  const open: number[] = []
  let next = 0
  for (let at = 0; at < tokens.length; at++) {
    while (open.length > 0 && regions[open.at(-1)!]!.last < at) open.pop()
    for (; next < regions.length && regions[next]!.first <= at; next++) {
      if (regions[next]!.kind !== 'function' || regions[next]!.last < at) continue
      parents[next] = open.at(-1) ?? -1
      open.push(next)
    }
    functionOf[at] = open.at(-1) ?? -1
  }
  const declarations = new Map<number, Declaration[]>()
  for (const declaration of file.declarations) {
    const list = declarations.get(declaration.region)
    if (list === undefined) declarations.set(declaration.region, [declaration])
    else list.push(declaration)
  }
  const positions = new Map<string, number[]>()
  const called = new Set<string>()
  tokens.forEach((token, at) => {
    // Names inside of Python's f-strings count as uses.
    if (token.kind === 'string' && /^[rR]?[fF]/.test(token.text)) {
      for (const [name] of token.text.matchAll(/[A-Za-z_]\w*/g)) push(positions, name, at)
      return
    }
    if (token.kind !== 'name') return
    const previous = tokens[at - 1]?.text
    if (previous === '.' || previous === '?.') return
    push(positions, token.text, at)
    if (tokens[at + 1]?.text === '(') called.add(token.text)
  })
  const scopes: FileScopes = {
    functionOf,
    parents,
    declared: new Set(file.declarations.map(({ name }) => name)),
    declarations,
    positions,
    called,
    scopes: new Map(),
  }
  known.set(file, scopes)
  return scopes
}

function push(lists: Map<string, number[]>, name: string, at: number): void {
  const list = lists.get(name)
  if (list === undefined) lists.set(name, [at])
  else list.push(at)
}

/** Index of the innermost function region around a token, or -1. */
export function functionAt(file: SourceFile, at: number): number {
  return scopesOf(file).functionOf[at] ?? -1
}

/** The names in scope at a token. */
export function scopeAt(file: SourceFile, at: number): Scope {
  const facts = scopesOf(file)
  const region = facts.functionOf[at] ?? -1
  const before = facts.scopes.get(region)
  if (before !== undefined) return before
  const byName = new Map<string, ScopeName>()
  let depth = 0
  for (let inner = region; ; inner = facts.parents[inner]!, depth++) {
    for (const { name, kind, token } of facts.declarations.get(inner) ?? []) {
      if (byName.has(name)) continue
      byName.set(name, {
        name,
        kind,
        token,
        depth: inner < 0 ? TOP : Math.min(depth, TOP - 1),
        isFunction: kind === 'function' || kind === 'class' || facts.called.has(name),
        isUnused: inner >= 0 && kind !== 'function' && isUnused(file, facts, inner, name),
      })
    }
    if (inner < 0) break
  }
  const scope = { names: [...byName.values()], byName }
  facts.scopes.set(region, scope)
  return scope
}

function isUnused(file: SourceFile, facts: FileScopes, region: number, name: string): boolean {
  const { first, last } = file.regions[region]!
  let uses = 0
  for (const at of facts.positions.get(name) ?? []) if (at >= first && at <= last) uses++
  return uses === 1 && !name.startsWith('_')
}

/** Whether a name is either in scope or one that this file does not declare, such as `Math`. */
export function isUsable(file: SourceFile, at: number, name: string): boolean {
  return scopeAt(file, at).byName.has(name) || !scopesOf(file).declared.has(name)
}

/** Whether the file declares the name anywhere. */
export function isDeclared(file: SourceFile, name: string): boolean {
  return scopesOf(file).declared.has(name)
}

/** Positions of a name in the file, but for properties of that name. */
export function positionsOf(file: SourceFile, name: string): readonly number[] {
  return scopesOf(file).positions.get(name) ?? []
}

/** The free names of an expression: no properties, keys or keywords. */
export function namesWithin(file: SourceFile, first: number, last: number): string[] {
  const names = new Set<string>()
  for (let at = first; at <= last; at++) {
    const { kind, text } = file.tokens[at]!
    const previous = file.tokens[at - 1]?.text
    if (kind !== 'name' || previous === '.' || previous === '?.') continue
    const next = file.tokens[at + 1]?.text
    const isKey = next === ':' && (previous === '{' || previous === ',')
    const isKeyword = file.language === 'python' && next === '=' && previous !== undefined
    if (!isKey && !(isKeyword && (previous === '(' || previous === ','))) names.add(text)
  }
  return [...names]
}
