/**
 * What a check command runs, as far as its text shows: the scripts behind `npm test`, a make target
 * or a shell script, the test runner among them, and the files that belong to the check.
 *
 * 1. Scripts are read when a goal is resolved, never again.
 * 2. Nothing is run. A command that cannot be followed is not recognised, and its check rests on
 *    exit code and protected files alone.
 * 3. Commands and scripts come from others: a check that names too many files is refused, since
 *    none of them must go unprotected.
 *
 * @module
 */
import { readdir } from 'node:fs/promises'
import { isAbsolute, join, posix, relative } from 'node:path'

import { GoalError } from '../errors.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { TestReporter } from '../test-outcomes.js'
import { detectReporter, startsRunner } from './reports/registry.js'
import { compileGlobs } from '../workspace/globs.js'
import {
  isCheckingName, isExample, isFixtureName, isInCodeFolder, isInputName, isMainName,
} from './sealed/file-kinds.js'
import { shellCommands, type ShellCommand } from './shell-commands.js'
import { readSmallFile } from './small-file.js'

/** Scripts that are followed, and their characters together. */
const MAX_TEXTS = 40
const MAX_CHARACTERS = 1024 * 1024
/** Folders that are listed and files that are read. */
const MAX_LOOKS = 10_000
/** Globs are matched with every file of the workspace, in up to a step for each character. */
const MAX_GLOBS = 100
const MAX_GLOB_CHARACTERS = 4_000
const MAX_PATH = 1_024

/** What the command of a check runs, found by reading its scripts. */
export interface CheckScript {
  /** The command, then all scripts that it leads to. */
  readonly text: string
  /** The first test runner found; null for none. */
  readonly reporter: TestReporter | null
  /** Globs of the files and folders that the command names and that belong to the check. */
  readonly files: readonly string[]
  /** Globs of files that would replace what the command runs if they appeared. */
  readonly sealed: readonly string[]
  /** True when the check builds what it then tests, so that build folders may change. */
  readonly builds: boolean
}

/**
 * Follows `command` into the scripts of the workspace `cwd`.
 *
 * @throws {@link GoalError} when they name too many files.
 */
export async function readCheckScript(command: string, cwd: string): Promise<CheckScript> {
  const reader = new ScriptReader(cwd)
  await reader.follow(command)
  const text = reader.texts.join('\n')
  return {
    text,
    reporter: detectReporter(text) ?? (reader.importsNodeTest ? 'node-test' : null),
    files: [...reader.files],
    sealed: [...reader.sealed],
    builds: /\b(tsc|build|esbuild|babel|swc|webpack|rollup|tsup|compile)\b/.test(text),
  }
}

/** Words in names of files and folders that check the work. */
const CHECKING = new RegExp(
  `(^|[^a-z])(${[
    ...['tests?', 'specs?', 'checks?', 'verify', 'verif(ier|ication)', 'grad(e|er)', 'e2e', 'ci'],
    ...['assert(ions)?', 'validat(e|or)', 'lint', 'bench(mark)?'],
  ].join('|')})([^a-z]|$)`,
  'i',
)
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash', 'source', '.'])
/** Programs that run the command after them. */
const WRAPPERS = new Set([
  'env', 'exec', 'time', 'command', 'nice', 'nohup', 'npx', 'timeout', 'cross-env', '{', '}',
  'do', 'then', 'else', 'if', 'elif', 'while', 'until', '!',
])
const INTERPRETERS =
  /^(?:node|tsx|deno|bun|python[\d.]*|ruby|perl|php|sh|bash|dash|zsh|ksh|ash|\.|source)$/
/** Programs that tell whether what another one has made is right. */
const COMPARES = /\b(?:diff|cmp|grep|comm|test|jq)\b|\[|\bassert/g
const MAX_PIPE = 2_000
/** Compares what a command prints. */
const COMPARES_OUTPUT = /\b(?:diff|cmp|assert\w*)\b|\[ +["']?\$\(|\| *(?:grep|jq)\b/
/** Files of a pattern that are read to find out whether they are tests. */
const MAX_SAMPLES = 20
/** Options whose values are files that a program loads before its work. */
const SETUP_OPTIONS = new Set([
  '--import', '--require', '-r', '--loader', '--experimental-loader', '--config', '--config-file',
  '--env-file', '--rcfile', '--test-global-setup', '--setup',
])

/** The value of a `-c` that means `--config`, unlike that of `gcc -c` or `sort -c`. */
const CONFIGURATION = /(?:\.(?:[cm]?[jt]s|json[5c]?|ya?ml|toml|ini|cfg|conf|xml)|rc)$/

/** Options that make a program work in another folder. */
const FOLDER_OPTION = /^(?:--prefix|--cwd|--dir|--directory|-C)(?:=(.+))?$/

class ScriptReader {
  readonly texts: string[] = []
  readonly files: Set<string> = new Set()
  readonly sealed: Set<string> = new Set()
  /** True when a file that Node runs imports node:test, which then runs without `--test`. */
  importsNodeTest = false
  readonly #cwd: string
  readonly #seen: Set<string> = new Set()
  readonly #folders: Map<string, ReadonlyMap<string, PathKind>> = new Map()
  readonly #contents: Map<string, string | null> = new Map()
  readonly #scripts: Map<string, Scripts> = new Map()
  #looks = 0
  #characters = 0
  #globs = 0
  #globCharacters = 0

  constructor(cwd: string) {
    this.#cwd = cwd
  }

  /** Reads commands that run in `folder`, relative to the workspace; empty for its root. */
  async follow(text: string, folder = ''): Promise<void> {
    this.#characters += text.length
    if (this.texts.length >= MAX_TEXTS || this.#characters > MAX_CHARACTERS) return
    this.texts.push(text)
    let base = folder
    /** What the variables of loops stand for. */
    const loops = new Map<string, readonly string[]>()
    let before: readonly string[] = []
    const comparisons = comparisonsIn(text)
    for (const command of shellCommands(text)) {
      const words = command.runs ? programAndArguments(command) : []
      if (words[0] === 'for' && words[2] === 'in') loops.set(words[1]!, words.slice(3))
      if (words[0] === 'cd') base = this.#path(words[1] ?? '.', base) ?? base
      else if (words.length > 0) {
        const compared = isCompared(text, command, comparisons)
        if (!compared) {
          const isSourced = words[0] === '.' || words[0] === 'source'
          for (const pattern of patternsRun(words, before, loops)) {
            await this.#cases(pattern, base)
            if (isSourced) await this.#libraries(pattern, base, text)
          }
        }
        await this.#command(words, startsRunner(command), base, compared)
      }
      before = words
    }
  }

  /** Notes a pattern of files that are run, each of which fails or passes. */
  async #cases(word: string, base: string): Promise<void> {
    const glob = this.#path(word, base)
    if (glob === null || !/.[*?{]/.test(glob) || this.files.has(glob)) return
    const isNamed = CHECKING.test(glob) || isInputName(glob) || isFixtureName(glob)
    if (isNamed || (await this.#holdsTests(glob))) this.#addGlob(glob)
  }

  async #holdsTests(glob: string): Promise<boolean> {
    if (isInCodeFolder(glob) || isExample(glob)) return false
    return (await this.#samples(glob)).some((text) => COMPARES_OUTPUT.test(text))
  }

  /** Notes libraries that a script loads from a folder and that judge what is printed. */
  async #libraries(word: string, base: string, script: string): Promise<void> {
    const glob = this.#path(word, base)
    if (glob === null || !/.[*?{]/.test(glob) || this.files.has(glob)) return
    const names = (await this.#samples(glob)).flatMap((text) => functionsIn(text))
    const { given, asked } = callsIn(script)
    if (names.some((name) => asked.has(name)) || !names.some((name) => given.has(name))) return
    this.#addGlob(glob)
    this.sealed.add(glob)
  }

  /** Texts of some of the files of a pattern. */
  async #samples(glob: string): Promise<readonly string[]> {
    const folder = posix.dirname(glob.slice(0, glob.search(/[*?{]/) + 1))
    const isOne = compileGlobs([glob])
    const kinds = await this.#listed(folder === '.' ? '' : folder)
    const paths = [...kinds.keys()].map((name) => posix.join(folder, name)).filter(isOne)
    const texts: string[] = []
    for (const path of paths.slice(0, MAX_SAMPLES)) texts.push((await this.#read(path)) ?? '')
    return texts
  }

  async #command(
    words: readonly string[],
    runner: boolean,
    base: string,
    compared: boolean,
  ): Promise<void> {
    const program = words[0]!
    const name = posix.basename(program)
    const folder = this.#folderOption(words, base)
    if (/^(npm|yarn|pnpm|bun)$/.test(name)) await this.#packageScript(words, folder)
    if (name === 'node' && words.includes('--run')) {
      await this.#packageScript(['node', 'run', words[words.indexOf('--run') + 1] ?? ''], base)
    }
    if (/^g?make$/.test(name)) await this.#makefile(folder)
    if (SHELLS.has(name)) {
      const script = words.slice(1).find((word) => !word.startsWith('-'))
      await this.#script(script, base, compared && name !== '.' && name !== 'source')
    } else if (program.includes('/')) await this.#program(program, base, compared)
    for (const [i, word] of words.slice(1).entries()) {
      await this.#argument(word, words[i]!, base, runner, name === 'node')
    }
  }

  /** Notes a word that names a file, a folder or a glob of the check. */
  async #argument(
    word: string,
    before: string,
    base: string,
    runner: boolean,
    node: boolean,
  ): Promise<void> {
    const option = /^(--?[\w-]+)=(.+)$/.exec(word)
    if (word.startsWith('-') && option === null) return
    const path = this.#path(option?.[2] ?? word, base)
    if (path === null || path === '') return
    if (/[*?{]/.test(path)) {
      if (CHECKING.test(path)) this.#addGlob(path)
      return
    }
    const kind = await this.#kind(path)
    if (kind === 'folder') {
      if (CHECKING.test(path)) this.files.add(`${path}/**`)
    } else if (kind === 'file') {
      const named = option?.[1] ?? before
      const setup = SETUP_OPTIONS.has(named) || (named === '-c' && CONFIGURATION.test(path))
      const tests = node && /['"]node:test['"]/.test((await this.#read(path)) ?? '')
      if (tests) this.importsNodeTest = true
      if (setup || runner || tests || CHECKING.test(path)) this.files.add(path)
    }
  }

  #folderOption(words: readonly string[], base: string): string {
    for (const [i, word] of words.entries()) {
      const match = FOLDER_OPTION.exec(word)
      if (match !== null) return this.#path(match[1] ?? words[i + 1] ?? '.', base) ?? base
    }
    return base
  }

  async #packageScript(words: readonly string[], folder: string): Promise<void> {
    const args = words
      .slice(1)
      .filter((word, i) => !word.startsWith('-') && !FOLDER_OPTION.test(words[i]!))
    const run = args[0] === 'run' || args[0] === 'run-script'
    const name = run ? args[1] : args[0] === 't' || args[0] === 'tst' ? 'test' : args[0]
    if (name === undefined) return
    let scripts = this.#scripts.get(folder)
    if (scripts === undefined) {
      scripts = await this.#readScripts(folder)
      this.#scripts.set(folder, scripts)
    }
    for (const script of [`pre${name}`, name, `post${name}`]) {
      const text = Object.hasOwn(scripts, script) ? scripts[script] : undefined
      if (typeof text === 'string' && this.#first(`${folder}: npm ${script}`))
        await this.follow(text, folder)
    }
  }

  async #readScripts(folder: string): Promise<Scripts> {
    const text = (await this.#read(posix.join(folder, 'package.json'))) ?? '{}'
    try {
      const parsed: unknown = JSON.parse(text)
      return { ...(parsed as { scripts?: Scripts }).scripts }
    } catch (error) {
      throwIfExhausted(error)
      return {}
    }
  }

  async #makefile(folder: string): Promise<void> {
    this.sealed.add(posix.join(folder, '{GNUmakefile,makefile,Makefile}'))
    this.files.add(posix.join(folder, '**/*.mk'))
    for (const name of ['GNUmakefile', 'makefile', 'Makefile']) {
      const path = posix.join(folder, name)
      const text = await this.#read(path)
      if (text === null) continue
      if (this.#first(path)) await this.follow(text.replaceAll(/^\t[@-]*/gm, ''), folder)
      return
    }
  }

  /** Follows a file that a shell runs; one whose output is compared may be what is checked. */
  async #script(word: string | undefined, base: string, compared: boolean): Promise<void> {
    const path = word === undefined ? null : this.#path(word, base)
    const text = path === null ? null : await this.#read(path)
    if (path === null || text === null) return
    const isCheck = CHECKING.test(path) || isCheckingName(path) || detectReporter(text) !== null
    if ((compared && !isCheck) || !this.#first(path)) return
    this.files.add(path)
    await this.follow(text, base)
  }

  /** Follows a file that is run by its path, if it is a script and not a built program. */
  async #program(word: string, base: string, compared: boolean): Promise<void> {
    const path = this.#path(word, base)
    if (path !== null && (await this.#read(path))?.startsWith('#!') === true)
      await this.#script(word, base, compared)
  }

  /** True at the first call with this key, so that scripts which start each other end. */
  #first(key: string): boolean {
    if (this.#seen.has(key)) return false
    this.#seen.add(key)
    return true
  }

  #addGlob(glob: string): void {
    if (this.files.has(glob)) return
    this.#globs += 1
    this.#globCharacters += glob.length
    if (this.#globs > MAX_GLOBS) throw tooMuch(`more than ${MAX_GLOBS} patterns of files`)
    if (this.#globCharacters > MAX_GLOB_CHARACTERS) {
      throw tooMuch(`patterns of files with more than ${MAX_GLOB_CHARACTERS} characters`)
    }
    this.files.add(glob)
  }

  /** Found in a listing, since most words are no paths at all. */
  async #kind(path: string): Promise<PathKind> {
    const kinds = await this.#listed(path.includes('/') ? posix.dirname(path) : '')
    return kinds.get(posix.basename(path)) ?? 'none'
  }

  async #listed(folder: string): Promise<ReadonlyMap<string, PathKind>> {
    let kinds = this.#folders.get(folder)
    if (kinds === undefined) {
      const isThere = folder === '' || (await this.#kind(folder)) !== 'none'
      kinds = isThere ? await this.#list(folder) : NOTHING
      this.#folders.set(folder, kinds)
    }
    return kinds
  }

  async #list(folder: string): Promise<ReadonlyMap<string, PathKind>> {
    this.#look()
    try {
      const entries = await readdir(join(this.#cwd, folder), { withFileTypes: true })
      return new Map(entries.map((one) => [one.name, one.isDirectory() ? 'folder' : 'file']))
    } catch (error) {
      throwIfExhausted(error)
      return NOTHING
    }
  }

  async #read(path: string): Promise<string | null> {
    let content = this.#contents.get(path)
    if (content === undefined) {
      if ((await this.#kind(path)) === 'none') return null
      this.#look()
      content = await readSmallFile(join(this.#cwd, path))
      this.#contents.set(path, content)
    }
    return content
  }

  #look(): void {
    this.#looks += 1
    if (this.#looks > MAX_LOOKS) throw tooMuch(`more than ${MAX_LOOKS} files`)
  }

  /** The path that `word` names, relative to the workspace; null when it is not inside. */
  #path(word: string, base: string): string | null {
    if (word.length > MAX_PATH || !/^[\w@./*?{},+ -]+$/.test(word)) return null
    const path = isAbsolute(word) ? relative(this.#cwd, word) : posix.join(base, word)
    if (path.length > MAX_PATH) return null
    if (path === '..' || path.startsWith('../') || isAbsolute(path)) return null
    return path === '.' ? '' : path.replace(/\/$/, '')
  }
}

type PathKind = 'none' | 'file' | 'folder'
const NOTHING: ReadonlyMap<string, PathKind> = new Map()
type Scripts = Readonly<Record<string, unknown>>

function tooMuch(what: string): GoalError {
  return new GoalError(
    'unsuitable',
    `the command of the check and its scripts name ${what}; put them behind a program of their own`,
  )
}

/** Where a text compares something for the first and the last time. */
interface Comparisons {
  readonly first: number
  readonly last: number
}

function comparisonsIn(text: string): Comparisons {
  const found = [...text.matchAll(COMPARES)]
  return { first: found.at(0)?.index ?? Infinity, last: found.at(-1)?.index ?? -1 }
}

/**
 * Is what a command prints or makes compared by another one? One that only has to succeed is not:
 * unless it is, by its name, one that builds or delivers something, and a comparison follows.
 */
function isCompared(text: string, { words }: ShellCommand, { first, last }: Comparisons): boolean {
  const start = words[0]!.at
  const lastWord = words.at(-1)!
  const end = lastWord.at + lastWord.text.length
  if (/\$\([ ]?$|`$/.test(text.slice(Math.max(0, start - 3), start))) {
    return first < start || last >= end
  }
  // Quotes, and commands in parentheses, are no part of a word's text.
  const near = text.slice(end, end + MAX_PIPE).split(/\n|;/, 1)[0]!
  const rest = near.slice(afterParentheses(near)).replace(/^["')]+/, '')
  if (/^[ \t]*\|(?!\|)/.test(rest)) return rest.search(COMPARES) !== -1
  const isWritten = words.some(({ text: word }) => /^1?>>?/.test(word))
  const isWork = words.some(({ text: word }) => /[./]/.test(word) && isMainName(word))
  return (isWritten || isWork) && last >= end
}

/** Where the parentheses end that a text begins with; 0 where it begins with none. */
function afterParentheses(text: string): number {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') depth += 1
    else if (text[i] === ')') depth -= 1
    if (depth === 0) return i === 0 ? 0 : i + 1
  }
  return 0
}

/** Patterns of files that a command runs: by a loop, by `find` or `xargs`, or `run-parts`. */
function patternsRun(
  words: readonly string[],
  before: readonly string[],
  loops: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const name = posix.basename(words[0]!)
  if (name === 'run-parts') return [`${words.at(-1)!}/*`]
  if (name === 'find') {
    const exec = words.findIndex((word) => /^-(?:exec|execdir|ok)$/.test(word))
    const pattern = words[words.indexOf('-name') + 1] ?? '*'
    return runsFile(words.slice(exec + 1), '{}') ? [posix.join(words[1]!, '**', pattern)] : []
  }
  if (name === 'xargs') {
    const isRun = words.slice(1).some((word) => INTERPRETERS.test(posix.basename(word)))
    return isRun ? before.slice(1).filter((word) => !word.startsWith('-')) : []
  }
  const file = fileRun(words)
  const [, folder] = /^((?:[\w.-]{1,80}\/){1,9})\$\{?\w+\}?$/.exec(file ?? '') ?? []
  if (folder !== undefined && folder !== './') return [`${folder}*`]
  const [, variable, more = ''] = /^(?:\.\/|\$PWD\/)?\$\{?(\w+)\}?(\/.*)?$/.exec(file ?? '') ?? []
  return (loops.get(variable ?? '') ?? []).map((glob) => `${glob}${more}`)
}

/** The functions that a shell script defines. */
function functionsIn(text: string): readonly string[] {
  const found = text.matchAll(/^[ \t]{0,40}(?:function[ \t]{1,9})?([\w-]{1,80})[ \t]{0,9}\(\)/gm)
  return [...found].map(([, name]) => name!)
}

/** What a script calls with what another command prints, and that of which it takes the output. */
function callsIn(text: string): Readonly<Record<'given' | 'asked', ReadonlySet<string>>> {
  const given = text.matchAll(CALLED_WITH_OUTPUT)
  const asked = text.matchAll(/(?:\$\(|`)[ \t]{0,9}([\w-]{1,80})/g)
  const names = (all: Iterable<RegExpExecArray>) => new Set([...all].map(([, name]) => name!))
  return { given: names(given), asked: names(asked) }
}

const CALLED_WITH_OUTPUT =
  /(?:^|[;&|{]|\b(?:then|do|else))[ \t]{0,40}([\w-]{1,80})[ \t][^\n;]{0,300}\$\(/gm

function runsFile(words: readonly string[], file: string): boolean {
  return fileRun(words) === file
}

/** The file that a command runs, alone or by an interpreter; null when it only looks at it. */
function fileRun(words: readonly string[]): string | null {
  if (words.length === 0 || !INTERPRETERS.test(posix.basename(words[0]!))) return words[0] ?? null
  // `sh -n` and `node --check` only parse.
  const at = words.findIndex((word, i) => i > 0 && !/^-[a-z]*[eux]$/.test(word))
  return words[at]?.startsWith('-') === true ? null : (words[at] ?? null)
}

/** The words of a command from its program on, without variables and wrappers such as `env`. */
function programAndArguments({ words }: ShellCommand): readonly string[] {
  const texts = words.map(({ text }) => text)
  const at = texts.findIndex((text) => !/^\w+=/.test(text) && !WRAPPERS.has(text))
  return at === -1 ? [] : texts.slice(at)
}
