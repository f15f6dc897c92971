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
import { shellCommands, type ShellCommand } from './shell-commands.js'
import { readSmallFile } from './small-file.js'

/** Scripts that are followed, and their characters together. */
const MAX_TEXTS = 40
const MAX_CHARACTERS = 1024 * 1024
/** Folders that are listed and files that are read. */
const MAX_LOOKS = 10_000
/** Globs are matched with every file of the workspace; each character may be a step per character. */
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
])
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
    for (const command of shellCommands(text)) {
      const words = command.runs ? programAndArguments(command) : []
      if (words[0] === 'cd') base = this.#path(words[1] ?? '.', base) ?? base
      else if (words.length > 0) await this.#command(words, startsRunner(command), base)
    }
  }

  async #command(words: readonly string[], runner: boolean, base: string): Promise<void> {
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
      await this.#script(script, base)
    } else if (program.includes('/')) await this.#program(program, base)
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

  /** Follows a file that a shell runs. */
  async #script(word: string | undefined, base: string): Promise<void> {
    const path = word === undefined ? null : this.#path(word, base)
    const text = path === null ? null : await this.#read(path)
    if (path === null || text === null || !this.#first(path)) return
    this.files.add(path)
    await this.follow(text, base)
  }

  /** Follows a file that is run by its path, if it is a script and not a built program. */
  async #program(word: string, base: string): Promise<void> {
    const path = this.#path(word, base)
    if (path !== null && (await this.#read(path))?.startsWith('#!') === true)
      await this.#script(word, base)
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
    const folder = path.includes('/') ? posix.dirname(path) : ''
    let kinds = this.#folders.get(folder)
    if (kinds === undefined) {
      const isThere = folder === '' || (await this.#kind(folder)) !== 'none'
      kinds = isThere ? await this.#list(folder) : NOTHING
      this.#folders.set(folder, kinds)
    }
    return kinds.get(posix.basename(path)) ?? 'none'
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

/** The words of a command from its program on, without variables and wrappers such as `env`. */
function programAndArguments({ words }: ShellCommand): readonly string[] {
  const texts = words.map(({ text }) => text)
  const at = texts.findIndex((text) => !/^\w+=/.test(text) && !WRAPPERS.has(text))
  return at === -1 ? [] : texts.slice(at)
}
