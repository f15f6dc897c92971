/**
 * Which imports of a test judge what the others return: in `same(add(1, 2), 3)`, where nothing else
 * could fail, `same` is an assertion of the project's own, and `add` is code under test.
 *
 * 1. Each use of it is a statement of its own: nothing is done with what it returns.
 * 2. Nothing else asserts in the tests that use it, and no hook uses it.
 * 3. One of these tests uses another module of the project as well.
 *
 * @module
 */
import { withoutImports, type Import } from './imports.js'

/** Begins a test, or a hook. */
const PART = /(?:^|[\s;({])(?:(?:test|it)(?:\.\w{1,20})?|(before|after|setup|teardown)\w{0,9})\(/g
const ASSERTS = /\b(?:assert|expect|should|throw|process\.exit)\b|\bt\.\w/
const ASSERTION_LIBRARY = /^(?:node:)?(?:assert|chai|expect|should|power-assert)(?:\/|$)/
/** After one of these, an expression goes on. */
const WITHIN = /[(,=+\-*/&|?:[.<!~%^]/
/** Strings, such as titles of tests, and comments to the end of a line. */
const QUOTED = /"(?:\\.|[^"\\\n]){0,300}"|'(?:\\.|[^'\\\n]){0,300}'|\/\/.*/g
const NAME = /[\w$]+/g
const MAX_ARGUMENTS = 400

type Part = { readonly kind: 'test' | 'hook' | 'top'; readonly start: number; readonly end: number }

/**
 * Those of `local` that judge in this text.
 *
 * @param local imports of files of the project, among `imports`
 */
export function judgesIn(
  text: string,
  imports: readonly Import[],
  local: ReadonlySet<Import>,
): ReadonlySet<Import> {
  const byName = new Map<string, Import>()
  for (const one of local) for (const name of one.names) byName.set(name, one)
  const judges = new Set(byName.values())
  if (judges.size < 2) return new Set()
  const asserting = new Set(
    imports
      .filter((one) => !local.has(one) && ASSERTION_LIBRARY.test(one.specifier))
      .flatMap(({ names }) => names),
  )
  const bare = withoutImports(text, imports).replaceAll(QUOTED, (one) => '0'.repeat(one.length))
  const parts = partsOf(bare)
  const hasTests = parts.some(({ kind }) => kind === 'test')
  const proven = new Set<Import>()
  for (const { kind, start, end } of parts) {
    const part = bare.slice(start, end)
    const statements = new Set<Import>()
    const values = new Set<Import>()
    let asserts = ASSERTS.test(part.replaceAll(NAME, (name) => (byName.has(name) ? '' : name)))
    for (const { 0: name, index } of part.matchAll(NAME)) {
      const one = byName.get(name)
      const at = start + index
      asserts ||= asserting.has(name)
      if (one === undefined || bare[at - 1] === '.') continue
      const wraps = wrapsOther(bare, at + name.length, one, byName)
      const counts = isStatement(bare, at, name.length) && (hasTests || wraps)
      ;(counts ? statements : values).add(one)
      if (counts && wraps) proven.add(one)
    }
    for (const one of values) judges.delete(one)
    for (const one of statements) {
      if (asserts || kind === 'hook') judges.delete(one)
      else if (values.size > 0 && kind === 'test') proven.add(one)
    }
  }
  return new Set([...judges].filter((one) => proven.has(one)))
}

function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  let kind: Part['kind'] = 'top'
  let start = 0
  for (const match of text.matchAll(PART)) {
    parts.push({ kind, start, end: match.index })
    kind = match[1] === undefined ? 'test' : 'hook'
    start = match.index
  }
  return [...parts, { kind, start, end: text.length }]
}

/** Is the value of the call that begins here used by nothing? */
function isStatement(text: string, at: number, length: number): boolean {
  if (!/^(?:\.[\w$]{1,100}){0,5}\(/.test(text.slice(at + length, at + length + 500))) return false
  const before = text.slice(Math.max(0, at - 80), at).replace(/\b(?:await|new|void|return)\s+$/, '')
  const end = before.trimEnd()
  if (end === '' || end.endsWith('=>') || /[;{})]$/.test(end)) return true
  return before.slice(end.length).includes('\n') && !WITHIN.test(end.at(-1)!)
}

/** Does the call after `at` have several arguments, one of them a call of another import? */
function wrapsOther(
  text: string,
  at: number,
  own: Import,
  byName: ReadonlyMap<string, Import>,
): boolean {
  const rest = text.slice(at, at + MAX_ARGUMENTS)
  const line = rest.split('\n', 1)[0]!
  const calls = [...line.matchAll(/(?<![\w$])([\w$]+)\(/g)].map(([, name]) => byName.get(name!))
  return line.includes(',') && calls.some((one) => one !== undefined && one !== own)
}
