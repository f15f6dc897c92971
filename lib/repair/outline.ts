/** A function, method, callback, or top-level value, as a range of tokens. */
export interface Region {
  /** Empty for anonymous functions. */
  readonly name: string
  /** Name of the enclosing class, or empty. */
  readonly owner: string
  readonly kind: 'function' | 'value'
  /** First and last token, both inclusive, parameters included. */
  readonly first: number
  readonly last: number
  /** First and last token of the body, without its braces. */
  readonly bodyFirst: number
  readonly bodyLast: number
  readonly params: readonly string[]
  readonly isAsync: boolean
}

export interface Declaration {
  readonly name: string
  /** Index of the declaring token. */
  readonly token: number
  /** Index of the innermost function region around it; -1 for the top level. */
  readonly region: number
  readonly kind: 'parameter' | 'variable' | 'function' | 'class' | 'import'
}

/** The structure of a file. Regions are in the order of their first token. */
export interface Outline {
  readonly regions: readonly Region[]
  readonly declarations: readonly Declaration[]
  /** Indices of the first tokens of statements, ascending. */
  readonly statements: readonly number[]
}

/** Index of the innermost function region around a token, or -1. */
export function regionAt(regions: readonly Region[], token: number): number {
  let found = -1
  for (let i = 0; i < regions.length; i++) {
    const region = regions[i]!
    if (region.first > token) break
    if (region.kind === 'function' && region.last >= token) found = i
  }
  return found
}

/** Index of the innermost named region around a token, top-level values included, or -1. */
export function namedRegionAt(regions: readonly Region[], token: number): number {
  let found = -1
  for (let i = 0; i < regions.length; i++) {
    const region = regions[i]!
    if (region.first > token) break
    if (region.name !== '' && region.last >= token) found = i
  }
  return found
}
