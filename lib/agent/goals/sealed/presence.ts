/**
 * Files whose presence a check asks for and can do without, as `existsSync('.offline') ? [] : all`
 * does. A check that fails without a file demands it; this one would take it for a reason to do
 * less.
 *
 * @module
 */

const ASKS = new RegExp(
  '\\b(?:existsSync|pathExists(?:Sync)?|exists|isfile|isdir|lexists' +
    '|l?statSync(?=\\([^\\n]{0,100}throwIfNoEntry))\\(',
  'g',
)
const LISTED = /\breaddir\w{0,9}\([^\n]{0,100}\)\.includes\(/g
const TRIES =
  /\btry\s*\{([^{}]{0,300})\}\s*catch\s*(?:\([^)]{0,40}\)\s*)?\{([^{}]{0,200})\}/g
const OPENS = /\b(?:readFile|access|stat|open|require|import)\w{0,9}\(/
const FAILS = /\bthrow\b|exit|fail|assert|expect/
const DEMANDS = /(?:assert|expect|should|ok|equal|is|true|truthy)\w{0,20}$/i
const NEAR = 200
/** Names of which the contrary is asked, or which are asserted. */
const DEMANDED = /!([\w$]{1,60})(?![\w$])|(?:assert|expect)[\w.]{0,40}\(([\w$]{1,60})(?![\w$])/g
const DEFINITIONS = /(?<![\w$])([a-zA-Z_$][\w$]{0,60})\s{0,5}=(?!=)(?=([^\n]{1,200}))/g

/** The parts of a text that name such files. */
export function optionalFilesIn(text: string): readonly string[] {
  const names = new NamesIn(text)
  const found: string[] = []
  for (const pattern of [ASKS, LISTED]) {
    for (const match of text.matchAll(pattern)) {
      const before = text.slice(Math.max(0, match.index - NEAR), match.index)
      const subject = /(?<![\w$.])[\w$.]*$/.exec(before)![0]
      const context = before.slice(0, before.length - subject.length)
      if (isDemanded(context, names)) continue
      const end = match.index + match[0].length
      found.push(withDefinitions(text.slice(end, end + NEAR).split('\n', 1)[0]!, names))
    }
  }
  for (const [, body, caught] of text.matchAll(TRIES)) {
    if (OPENS.test(body!) && !FAILS.test(caught!)) found.push(withDefinitions(body!, names))
  }
  return found
}

const OPTIONAL_IN_SHELL = [
  /(?:\[ |\btest )! -[defrs] ([^\s;|&\]]{1,200})(?: \])? \|\|/g,
  /(?:\[ |\btest )-[defrs] ([^\s;|&\]]{1,200})(?: \])?(?: &&|;? then) (?:\.|source) /g,
  /\bif (?:\[ |test )-[defrs] ([^\s;|&\]]{1,200})(?: \])?;?\s{1,80}then\s{1,80}(?:\.|source) /g,
  /\$\((?:cat |<[ ]?)([^\s;|&)]{1,200}) 2> ?\/dev\/null/g,
]

/** The same of a shell script: it goes on without the file. */
export function optionalInShell(text: string): readonly string[] {
  return OPTIONAL_IN_SHELL.flatMap((one) => [...text.matchAll(one)].map(([, name]) => name!))
}

/** What a text says of its names, each of which is looked for once. */
class NamesIn {
  readonly #text: string
  #demanded: ReadonlySet<string> | null = null
  #definitions: Map<string, string> | null = null

  constructor(text: string) {
    this.#text = text
  }

  isDemanded(name: string): boolean {
    this.#demanded ??= new Set(
      [...this.#text.matchAll(DEMANDED)].map(([, negated, asserted]) => (negated ?? asserted)!),
    )
    return this.#demanded.has(name)
  }

  /** What a name is defined as first; undefined for nothing. */
  definition(name: string): string | undefined {
    if (this.#definitions === null) {
      this.#definitions = new Map()
      for (const [, defined, value] of this.#text.matchAll(DEFINITIONS)) {
        if (!this.#definitions.has(defined!)) this.#definitions.set(defined!, value!)
      }
    }
    return this.#definitions.get(name)
  }
}

/** Must the file be there, or is its absence what is asked for? */
function isDemanded(context: string, names: NamesIn): boolean {
  if (/!\s*$/.test(context)) return true
  const name = /\b(?:const|let|var)\s+([\w$]+)\s*=\s*$/.exec(context)?.[1]
  if (name !== undefined) return names.isDemanded(name)
  let depth = 0
  for (let at = context.length - 1; at >= 0; at--) {
    if (context[at] === ')') depth += 1
    else if (context[at] === '(') depth -= 1
    if (depth < 0) return DEMANDS.test(context.slice(0, at).trimEnd())
  }
  return false
}

/** The arguments up to the closing parenthesis, with what their names were defined as. */
function withDefinitions(argument: string, names: NamesIn): string {
  const close = argument.indexOf(')')
  const nested = argument.slice(0, close === -1 ? undefined : close).includes('(')
  const own = nested || close === -1 ? argument : argument.slice(0, close)
  const used = new Set(own.match(/(?<![\w$.'"`/])[a-zA-Z_$][\w$]{0,60}/g)?.slice(0, 5))
  return [own, ...[...used].flatMap((name) => names.definition(name) ?? [])].join('\n')
}
