import type { Outline } from './outline.js'
import { outlineJavaScript } from './outline-javascript.js'
import { outlinePython } from './outline-python.js'
import type { Language, Token } from './token.js'
import { tokenizeJavaScript } from './tokenize-javascript.js'
import { tokenizePython } from './tokenize-python.js'

/** A source file with its tokens and outline. */
export interface SourceFile extends Outline {
  readonly path: string
  readonly language: Language
  readonly text: string
  readonly tokens: readonly Token[]
}

const LANGUAGES: ReadonlyMap<string, Language> = new Map(
  Object.entries<Language>({
    js: 'javascript',
    mjs: 'javascript',
    cjs: 'javascript',
    jsx: 'javascript',
    ts: 'typescript',
    mts: 'typescript',
    cts: 'typescript',
    tsx: 'typescript',
    py: 'python',
  }),
)

/** The language of a file by its extension, or null. */
export function languageOf(path: string): Language | null {
  return LANGUAGES.get(/\.(\w+)$/.exec(path)?.[1] ?? '') ?? null
}

/** Tokenizes and outlines a file; null when its language is not supported. */
export function parseSource(path: string, text: string): SourceFile | null {
  const language = languageOf(path)
  if (language === null) return null
  const tokens = language === 'python' ? tokenizePython(text) : tokenizeJavaScript(text)
  const outline = language === 'python' ? outlinePython(tokens) : outlineJavaScript(tokens)
  return { path, language, text, tokens, ...outline }
}

/** Sets that operators look up at every token, computed once per file. */
export interface NameFacts {
  /** Indices of tokens that declare a name. */
  readonly declaredAt: ReadonlySet<number>
  /** Names that are called as functions. */
  readonly called: ReadonlySet<string>
  /** Names of functions and methods that the file declares. */
  readonly functions: ReadonlySet<string>
  /** Names used after `this.` or `self.`. */
  readonly fields: ReadonlySet<string>
  readonly statements: ReadonlySet<number>
}

const factsByFile = new WeakMap<SourceFile, NameFacts>()

export function nameFacts(file: SourceFile): NameFacts {
  const known = factsByFile.get(file)
  if (known !== undefined) return known
  const called = new Set<string>()
  const fields = new Set<string>()
  file.tokens.forEach((token, at) => {
    if (token.kind !== 'name') return
    const before = file.tokens[at - 1]?.text
    if (before === '.') {
      const owner = file.tokens[at - 2]?.text
      if (owner === 'this' || owner === 'self') fields.add(token.text)
    } else if (file.tokens[at + 1]?.text === '(') called.add(token.text)
  })
  const facts: NameFacts = {
    declaredAt: new Set(file.declarations.map(({ token }) => token)),
    called,
    functions: new Set(
      file.regions.filter(({ kind }) => kind === 'function').map(({ name }) => name),
    ),
    fields,
    statements: new Set(file.statements),
  }
  factsByFile.set(file, facts)
  return facts
}

/** Whether the string at `at` is a key, as in `a['b']`, `{ 'b': 1 }` or `a.get('b')`. */
export function isKeyString(file: SourceFile, at: number): boolean {
  const before = file.tokens[at - 1]
  const next = file.tokens[at + 1]?.text
  if (before?.text === '[' && next === ']') return true
  if (next === ':' && (before?.text === '{' || before?.text === ',')) return true
  return (
    before?.text === '(' &&
    ['get', 'pop', 'setdefault', 'has', 'getattr'].includes(file.tokens[at - 2]?.text ?? '')
  )
}
