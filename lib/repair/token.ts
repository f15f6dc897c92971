/** The source languages that can be repaired. */
export type Language = 'javascript' | 'typescript' | 'python'

/** Kind of a token. A template literal is its text parts; code in `${}` is tokenized as well. */
export type TokenKind =
  'name' | 'keyword' | 'number' | 'string' | 'template' | 'regex' | 'punctuator'

/** A token of a source file. Comments and white space are skipped. */
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
  /** Indentation of the line, in characters. */
  readonly indent: number
  /** Index of the matching bracket; -1 for other tokens and unmatched brackets. */
  match: number
}

const CLOSERS: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ ')': '(', ']': '[', '}': '{' }),
)

/** Fills in {@link Token.match}; unmatched brackets keep -1. */
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

/** Splits a string token into prefix, quote and body, which stays escaped. */
export function stringBody(text: string): { prefix: string; quote: string; body: string } | null {
  const prefix = /^[A-Za-z]{0,2}/.exec(text)![0]
  const rest = text.slice(prefix.length)
  const quote = ["'''", '"""', "'", '"'].find(
    (one) => rest.startsWith(one) && rest.endsWith(one) && rest.length >= 2 * one.length,
  )
  if (quote === undefined) return null
  return { prefix, quote, body: rest.slice(quote.length, -quote.length) }
}
