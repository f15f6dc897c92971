import type { SourceFile } from '../source.js'

/** The families of patches; cues of a failure make some of them more likely. */
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

/** One small change to one file: the text from `start` to `end` becomes `text`. */
export interface Patch {
  readonly path: string
  readonly start: number
  readonly end: number
  readonly text: string
  readonly operator: OperatorName
  /** How likely such a change is, before anything is known about its place; about 0 to 1. */
  readonly weight: number
  /** The token where it happens, for ranking. */
  readonly token: number
}

/** What the failing tests tell about values and names, see `clues.ts`. */
export interface Clues {
  /** How much more (or less) likely a family of patches is, 1 when nothing is known. */
  boost(operator: OperatorName): number
  /** Pairs of strings that were compared, without quotes. */
  readonly strings: readonly { readonly expected: string; readonly actual: string }[]
  /** Numbers that a test expected. */
  readonly numbers: readonly string[]
  /** Names that did not exist when the code ran. */
  readonly missing: ReadonlySet<string>
  /** String literals of the failing tests, without quotes. */
  readonly testStrings: ReadonlySet<string>
  /** How often each name is used for a property that is not called, in the project and its tests. */
  readonly properties: ReadonlyMap<string, number>
  /** The same for methods. */
  readonly methods: ReadonlyMap<string, number>
  /** How often each string is used as a key there. */
  readonly keys: ReadonlyMap<string, number>
}

/** What an operator gets for each token of a file. */
export interface OperatorContext {
  readonly file: SourceFile
  readonly clues: Clues
  /** Proposes to put `text` in place of the tokens from `first` to `last` (inclusive). */
  replace(first: number, last: number, text: string, operator: OperatorName, weight: number): void
  /** Proposes to put `text` in place of a range of the file; `token` says where that is. */
  splice(
    start: number,
    end: number,
    text: string,
    operator: OperatorName,
    weight: number,
    token: number,
  ): void
}

/** Proposes patches that begin at one token. It must not know about any particular program. */
export type Operator = (context: OperatorContext, at: number) => void
