import type { SourceFile } from '../source.js'

/** The families of patches; clues of a failure make some of them more likely. */
export type OperatorName =
  | 'comparison'
  | 'equality'
  | 'logic'
  | 'negation'
  | 'arithmetic'
  | 'assignment'
  | 'number'
  | 'offset'
  | 'operands'
  | 'identifier'
  | 'property'
  | 'arguments'
  | 'call'
  | 'await'
  | 'return'
  | 'statement'
  | 'keyword'
  | 'string'
  | 'boolean'
  | 'null'
  | 'default'
  | 'guard'
  | 'indent'
  | 'pattern'
  | 'literal'

/** One small change to one file: `text` replaces the text from `start` to `end`. */
export interface Patch {
  readonly path: string
  readonly start: number
  readonly end: number
  readonly text: string
  readonly operator: OperatorName
  /** Likelihood of such a change regardless of its location, about 0 to 1. */
  readonly weight: number
  /** Index of the changed token, by which its function is found. */
  readonly token: number
}

/** What the failing tests show about values and names, see `clues.ts`. */
export interface Clues {
  /** Factor for the likelihood of a family of patches; 1 without a clue. */
  boost(operator: OperatorName): number
  /** Compared strings, without quotes; in both directions where the sides are uncertain. */
  readonly strings: readonly { readonly expected: string; readonly actual: string }[]
  /** Numbers that failing tests expected, as JavaScript prints them. */
  readonly numbers: readonly string[]
  /** Names that did not exist at run time. */
  readonly missing: ReadonlySet<string>
  /** String literals of the failing tests, without quotes. */
  readonly testStrings: ReadonlySet<string>
  /** Uses of each property that is not called, in the project and its tests. */
  readonly properties: ReadonlyMap<string, number>
  /** The same for properties that are called. */
  readonly methods: ReadonlyMap<string, number>
  /** Uses of each string as a key. */
  readonly keys: ReadonlyMap<string, number>
}

/** A file and its clues, and where an operator puts its patches. */
export interface OperatorContext {
  readonly file: SourceFile
  readonly clues: Clues
  /** Proposes to replace the tokens from `first` to `last` (inclusive) by `text`. */
  replace(first: number, last: number, text: string, operator: OperatorName, weight: number): void
  /** Proposes to replace a range of the file by `text`; `token` is its location for ranking. */
  splice(
    start: number,
    end: number,
    text: string,
    operator: OperatorName,
    weight: number,
    token: number,
  ): void
}

/** Proposes patches at one token. It must not be specific to a program. */
export type Operator = (context: OperatorContext, at: number) => void
