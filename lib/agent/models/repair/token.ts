/** The source languages that can be repaired. */
export type Language = 'javascript' | 'typescript' | 'python'

/**
 * What a token is. A template literal gives its text parts; the code in `${}` is tokens of its
 * own.
 */
export type TokenKind =
  'name' | 'keyword' | 'number' | 'string' | 'template' | 'regex' | 'punctuator'

/** One token of a source file; comments and white space are none. */
export interface Token {
  readonly kind: TokenKind
  readonly text: string
  /** Offsets in the text, `end` exclusive. */
  readonly start: number
  readonly end: number
  /** Line number, from 1. */
  readonly line: number
  /** True for the first token of a line (of a logical line in Python). */
  readonly first: boolean
  /** Characters before the first token of this line. */
  readonly indent: number
  /** Index of the bracket that closes or opens this one; -1 for other tokens and lone brackets. */
  match: number
}

const CLOSERS: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ ')': '(', ']': '[', '}': '{' }),
)

/** Fills in {@link Token.match}. A closer without its opener is left alone. */
export function matchBrackets(tokens: readonly Token[]): void {
  const open: number[] = []
  tokens.forEach((token, index) => {
    if (token.kind !== 'punctuator') return
    if (token.text === '(' || token.text === '[' || token.text === '{') {
      open.push(index)
      return
    }
    const opener = CLOSERS.get(token.text)
    const last = open.at(-1)
    if (opener === undefined || last === undefined || tokens[last]!.text !== opener) return
    open.pop()
    tokens[last]!.match = index
    token.match = last
  })
}

/** The characters of a string token between its quotes, as they stand in the source. */
export function stringBody(text: string): { prefix: string; quote: string; body: string } | null {
  const found = /^([A-Za-z]{0,2})('''|"""|'|")([\s\S]*)\2$/.exec(text)
  return found === null ? null : { prefix: found[1]!, quote: found[2]!, body: found[3]! }
}
