/**
 * What a makefile says it makes, told without running it. Whatever cannot be told without make (a
 * variable of the environment, a function) stands as `*`, and so does `%`: names become globs.
 *
 * @module
 */

/** A rule for one target. */
export interface MakeRule {
  /** A path or glob, relative to the folder of the makefile. */
  readonly target: string
  /** False for a target that is made whenever it is not there, and never again. */
  readonly hasPrerequisites: boolean
  readonly hasRecipe: boolean
}

/** The rules of a makefile. */
export interface MakeRules {
  /** Of targets that are files. */
  readonly rules: readonly MakeRule[]
  /** Paths or globs of what is included where it exists. */
  readonly optional: readonly string[]
}

const MAX_RULES = 2_000
const MAX_LINE = 16 * 1024
const MAX_DEPTH = 8
/** Characters that are read and written to replace variables by their values. */
const MAX_EXPANDED = 1024 * 1024

const ASSIGNMENT = /^(?:(?:export|override|private)[ ]+)*([\w.-]+)[ \t]*(\+|\?|!|:{1,3})?=(.*)$/
const INCLUDE = /^(-?)(s?)include[ \t](.*)$/
const DIRECTIVE = /^(?:ifn?eq|ifn?def|else|endif|export|unexport|vpath|override|undefine)\b/

/** Reads the text of a makefile, with what it includes. */
export function makeRules(text: string): MakeRules {
  const reader = new Reader()
  for (const line of text.replaceAll(/\\\r?\n[ \t]*/g, ' ').split('\n')) reader.line(line)
  return reader.result()
}

function withoutComment(line: string): string {
  for (let at = line.indexOf('#'); at !== -1; at = line.indexOf('#', at + 1)) {
    if (at === 0 || /\s/.test(line[at - 1]!)) return line.slice(0, at)
  }
  return line
}

class Reader {
  readonly #rules: { targets: string; hasPrerequisites: boolean; hasRecipe: boolean }[] = []
  readonly #optional: string[] = []
  readonly #variables: Map<string, string> = new Map()
  readonly #phony: string[] = []
  #left = MAX_EXPANDED
  #isDefining = false

  line(given: string): void {
    if (given.startsWith('\t')) {
      const rule = this.#rules.at(-1)
      if (rule !== undefined && given.trim() !== '') rule.hasRecipe = true
      return
    }
    if (given.length > MAX_LINE) return
    const line = withoutComment(given).trim()
    if (/^define\b/.test(line)) this.#isDefining = true
    if (/^endef\b/.test(line) || this.#isDefining) {
      this.#isDefining = !/^endef\b/.test(line)
      return
    }
    const assignment = ASSIGNMENT.exec(line)
    const include = INCLUDE.exec(line)
    if (assignment !== null) this.#assign(assignment[1]!, assignment[2], assignment[3]!.trim())
    else if (include !== null) {
      const isOptional = include[1] !== '' || include[2] !== ''
      if (isOptional || /[*?]|wildcard /.test(include[3]!)) this.#optional.push(include[3]!.trim())
    } else if (!DIRECTIVE.test(line)) this.#rule(line)
  }

  #assign(name: string, kind: string | undefined, value: string): void {
    const before = this.#variables.get(name)
    if (kind === '?' && before !== undefined) return
    // `$(shell …)` by another spelling.
    const text = kind === '!' ? '*' : value
    const isLong = kind === '+' && (before?.length ?? 0) > MAX_LINE
    if (!isLong) this.#variables.set(name, kind === '+' ? `${before ?? ''} ${text}` : text)
  }

  #rule(line: string): void {
    const colon = separator(line)
    if (colon === -1 || this.#rules.length >= MAX_RULES) return
    const targets = line.slice(0, colon).trim()
    const [before = '', recipe] = line.slice(colon + 1).replace(/^[:&]/, '').split(';', 2)
    const rest = before.trim()
    // A variable of one target.
    if (ASSIGNMENT.test(rest)) return
    if (targets === '.PHONY') this.#phony.push(rest)
    else if (!/^\.[A-Z_]+$/.test(targets)) {
      const hasPrerequisites = rest.replaceAll('|', '').trim() !== ''
      this.#rules.push({ targets, hasPrerequisites, hasRecipe: recipe !== undefined })
    }
  }

  result(): MakeRules {
    const phony = new Set(this.#phony.flatMap((names) => this.#words(names)))
    const found = new Map<string, MakeRule>()
    for (const { targets, hasPrerequisites, hasRecipe } of this.#rules) {
      for (const target of this.#words(targets)) {
        if (phony.has(target)) continue
        const known = found.get(target)
        found.set(target, {
          target,
          hasPrerequisites: hasPrerequisites || known?.hasPrerequisites === true,
          hasRecipe: hasRecipe || known?.hasRecipe === true,
        })
      }
    }
    const optional = this.#optional.flatMap((text) => this.#words(text))
    return { rules: [...found.values()], optional }
  }

  /** Paths and globs with a part that says something. */
  #words(text: string): readonly string[] {
    const words = this.#expand(text, 0).split(/\s+/)
    return words
      .map((word) => word.replace(/^\.\//, '').replace(/(^|\/)%/, '$1**/*'))
      .map((word) => word.replaceAll('%', '*').replaceAll(/\*{3,}/g, '*'))
      .filter((word) => /[\w-]/.test(word) && !word.startsWith('/') && !word.includes('..'))
  }

  #expand(text: string, depth: number): string {
    if (!text.includes('$')) return text
    if (depth > MAX_DEPTH) return '*'
    this.#left -= text.length
    let out = ''
    for (let i = 0; i < text.length && this.#left > 0; i++) {
      if (text[i] !== '$') out += text[i]
      else {
        const end = closing(text, i + 1)
        const inner = end === i + 1 ? text.charAt(end) : text.slice(i + 2, end)
        out += inner === '$' ? '*' : this.#value(inner, depth + 1)
        i = end
      }
    }
    this.#left -= out.length
    return out
  }

  #value(inner: string, depth: number): string {
    const [, name, all = ''] = /^([\w.-]+)[ \t](.*)$/s.exec(inner) ?? []
    if (name !== undefined) {
      const given = all.trimStart()
      const [first = '', second = '', ...more] = given.split(',')
      if (name === 'wildcard' || name === 'sort' || name === 'strip') {
        return this.#expand(given, depth)
      }
      if (name === 'addprefix' || name === 'addsuffix') {
        const fixed = this.#expand(first, depth)
        return eachWord(this.#expand([second, ...more].join(','), depth), (word) =>
          name === 'addprefix' ? fixed + word : word + fixed,
        )
      }
      if (name !== 'patsubst') return '*'
      const words = this.#expand(more.join(','), depth)
      return substituted(words, this.#expand(first, depth), this.#expand(second, depth))
    }
    const [, variable = inner, from, to] = /^([\w.-]+):([^=]*)=(.*)$/s.exec(inner) ?? []
    const value = this.#variables.get(variable)
    if (value === undefined) return variable === 'CURDIR' ? '.' : '*'
    const text = this.#expand(value, depth)
    if (from === undefined) return text
    const isPattern = from.includes('%')
    return substituted(text, isPattern ? from : `%${from}`, isPattern ? to! : `%${to}`)
  }
}

/** The first colon that is not in parentheses; -1 for none. */
function separator(line: string): number {
  for (let i = 0; i < line.length; i++) {
    if (line[i] === ':') return i
    if (line[i] === '$') i = closing(line, i + 1)
  }
  return -1
}

/** Where the reference ends that begins after a dollar sign. */
function closing(text: string, at: number): number {
  if (text[at] !== '(' && text[at] !== '{') return at
  let depth = 0
  for (let i = at; i < text.length; i++) {
    if (text[i] === '(' || text[i] === '{') depth += 1
    else if (text[i] === ')' || text[i] === '}') depth -= 1
    if (depth === 0) return i
  }
  return text.length
}

const eachWord = (text: string, change: (word: string) => string): string =>
  text.split(/\s+/).filter((word) => word !== '').map(change).join(' ')

/** Words that fit the pattern `from` become `to`; `%` stands for the same in both. */
function substituted(text: string, from: string, to: string): string {
  const [head = '', tail = ''] = from.split('%', 2)
  return eachWord(text.trim(), (word) => {
    const fits = word.startsWith(head) && word.endsWith(tail) && from.includes('%')
    if (!fits || word.length < head.length + tail.length) return word === '*' ? '*' : word
    return to.replace('%', () => word.slice(head.length, word.length - tail.length))
  })
}
