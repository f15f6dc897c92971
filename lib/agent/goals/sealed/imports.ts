/**
 * What the text of a JavaScript program imports, and under which names. Nothing is parsed: a
 * statement that looks like an import in a comment counts as one.
 *
 * @module
 */

/** One import. */
export interface Import {
  readonly specifier: string
  /** What it is called in the text; empty where that cannot be told. */
  readonly names: readonly string[]
  /** Where its statement stands. */
  readonly start: number
  readonly end: number
}

const SPECIFIER = new RegExp(
  '\\b(?:from|import|require(?:\\.resolve)?)\\s{0,9}\\(?\\s{0,9}' +
    '(?:"([^"\'`\\n]{1,300})"|\'([^"\'`\\n]{1,300})\'|`([^"\'`\\n]{1,300})`)',
  'g',
)
/** Statements are no longer than this before their specifier. */
const MAX_CLAUSE = 600
const CLAUSE = new RegExp(
  '^(?:import|export|const|let|var)\\b([\\w$\\s{},*:]*)' +
    '(?:\\bfrom|=\\s*(?:await\\s+)?(?:require|import))[\\s(]*$',
)

/** The imports of a text, in their order. */
export function importsIn(text: string): readonly Import[] {
  const found: Import[] = []
  for (const match of text.matchAll(SPECIFIER)) {
    const specifier = (match[1] ?? match[2] ?? match[3])!
    const quote = match.index + match[0].length - specifier.length - 2
    const before = text.slice(Math.max(0, quote - MAX_CLAUSE), quote)
    const from = lastStatement(before)
    const clause = from === -1 ? null : CLAUSE.exec(before.slice(from))
    found.push({
      specifier,
      names: clause === null ? [] : namesIn(clause[1]!),
      start: clause === null ? match.index : quote - before.length + from,
      end: match.index + match[0].length,
    })
  }
  return found
}

function lastStatement(before: string): number {
  let last = -1
  // A dynamic import on the right of `=` begins no statement.
  for (const { index } of before.matchAll(/\b(?:import(?!\s{0,9}\()|export|const|let|var)\b/g)) {
    last = index
  }
  return last
}

/** The names that a clause binds: `{ a, b as c, d: e }` are a, c and e. */
function namesIn(clause: string): readonly string[] {
  const parts = clause.replaceAll(':', ' ').split(/[{},]/)
  const last = parts.map((part) => part.trim().split(/\s+/).at(-1)!)
  return last.filter((name) => /^[\w$]+$/.test(name))
}

/** The text with spaces in place of its imports. */
export function withoutImports(text: string, imports: readonly Import[]): string {
  const parts: string[] = []
  let at = 0
  for (const { start, end } of imports) {
    if (start < at) continue
    parts.push(text.slice(at, start), ' '.repeat(end - start))
    at = end
  }
  return parts.join('') + text.slice(at)
}
