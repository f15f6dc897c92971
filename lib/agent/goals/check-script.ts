/**
 * What a check command is known to run: the scripts behind `npm test`, a make target or a shell
 * script, the test runner among them, and the files that belong to the check and not to the work.
 *
 * Only read when a goal is resolved. It reads text, it does not run a shell: what it cannot follow
 * is not recognised, and such a check is verified by exit code and protected files alone.
 *
 * @module
 */
import { constants } from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import { isAbsolute, join, posix, relative } from 'node:path'

import type { TestReporter } from '../goal.js'

const MAX_TEXTS = 40
const MAX_TEXT_BYTES = 128 * 1024

/** What stands behind a command. */
export interface CheckScript {
  /** All text that was followed, the command first. */
  readonly text: string
  readonly reporter: TestReporter | null
  /** Globs of files and folders which the command names and which belong to the check. */
  readonly files: readonly string[]
  /** True when the check builds what it then tests, so that build folders are no sources. */
  readonly builds: boolean
}

/** Reads what stands behind `command` in the workspace. */
export async function readCheckScript(command: string, cwd: string): Promise<CheckScript> {
  const reader = new ScriptReader(cwd)
  await reader.follow(command)
  const text = reader.texts.join('\n')
  return {
    text,
    reporter: detectReporter(text),
    files: [...reader.files],
    builds: /\b(tsc|build|esbuild|babel|swc|webpack|rollup|tsup|compile)\b/.test(text),
  }
}

const NODE_TEST = /(^|[\s;&|(/"'])(node|tsx|ts-node)(?=\s)[^;&|\n]*\s--test(?=[\s"';&|)]|$)/m
const PYTEST = /(^|[\s;&|(/"'])(pytest|py\.test)(?=[\s"';&|)]|$)/m
const UNITTEST = /python[0-9.]*\s[^;&|\n]*-m\s*unittest(?=[\s"';&|)]|$)/m

/**
 * The first runner in some text whose report we can take down. None when the text sets the very
 * variable that our reporter comes in by.
 */
export function detectReporter(text: string): TestReporter | null {
  const found: [number, TestReporter][] = []
  const look = (pattern: RegExp, reporter: TestReporter, unless: RegExp): void => {
    const match = pattern.exec(text)
    if (match !== null && !unless.test(text)) found.push([match.index, reporter])
  }
  look(NODE_TEST, 'node-test', /\bNODE_OPTIONS=(?!\S*\$)/)
  look(PYTEST, 'pytest', /\b(PYTHONPATH|PYTEST_ADDOPTS)=(?!\S*\$)/)
  look(UNITTEST, 'unittest', /\bPYTHONPATH=(?!\S*\$)/)
  found.sort(([a], [b]) => a - b)
  return found[0]?.[1] ?? null
}

/** Names by which people mark files that check rather than do. */
const CHECKING = /(^|[^a-z])(tests?|specs?|checks?|verify|verif(ier|ication)|grad(e|er)|assert(ions)?|validat(e|or)|lint|bench(mark)?|e2e|ci)([^a-z]|$)/i
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash', 'source', '.'])
const WRAPPERS = new Set(['env', 'exec', 'time', 'command', 'nice', 'nohup', 'npx', 'timeout', 'cross-env'])
const SETUP_OPTIONS = new Set([
  '--import', '--require', '-r', '--loader', '--experimental-loader', '--config', '-c', '--config-file',
  '--env-file', '--rcfile', '--test-global-setup', '--setup',
])

class ScriptReader {
  readonly texts: string[] = []
  readonly files: Set<string> = new Set()
  readonly #cwd: string
  readonly #seen: Set<string> = new Set()
  #scripts: Readonly<Record<string, unknown>> | undefined

  constructor(cwd: string) {
    this.#cwd = cwd
  }

  async follow(text: string): Promise<void> {
    if (this.texts.length >= MAX_TEXTS) return
    this.texts.push(text)
    for (const part of text.split(/&&|\|\||[;|\n&]/)) {
      await this.#segment(part.replaceAll(/[()`{}]/g, ' '))
    }
  }

  async #segment(part: string): Promise<void> {
    const words = (part.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'))
    while (words.length > 0 && (/^\w+=/.test(words[0]!) || WRAPPERS.has(words[0]!))) words.shift()
    const program = words[0]
    if (program === undefined || program.startsWith('#')) return
    const name = posix.basename(program)
    if (/^(npm|yarn|pnpm|bun)$/.test(name)) await this.#packageScript(words)
    if (/^g?make$/.test(name)) await this.#makefile()
    if (SHELLS.has(name)) await this.#script(words.slice(1).find((word) => !word.startsWith('-')))
    else if (program.includes('/')) await this.#program(program)
    const runner = detectReporter(part) !== null
    for (const [i, word] of words.slice(1).entries()) await this.#argument(word, words[i]!, runner)
  }

  /** A word that may name a file, a folder or a glob of the check. */
  async #argument(word: string, before: string, runner: boolean): Promise<void> {
    const option = /^(--?[\w-]+)=(.+)$/.exec(word)
    const setup = SETUP_OPTIONS.has(option?.[1] ?? before)
    const path = this.#path(option?.[2] ?? word)
    if (path === null || (word.startsWith('-') && option === null)) return
    if (/[*?{]/.test(path)) {
      if (CHECKING.test(path)) this.files.add(path)
      return
    }
    const stats = await lstat(join(this.#cwd, path)).catch(() => null)
    if (stats === null) return
    if (stats.isDirectory()) {
      if (CHECKING.test(path)) this.files.add(`${path}/**`)
    } else if (setup || runner || CHECKING.test(path)) this.files.add(path)
  }

  async #packageScript(words: readonly string[]): Promise<void> {
    const args = words.slice(1).filter((word) => !word.startsWith('-'))
    const run = args[0] === 'run' || args[0] === 'run-script'
    const name = run ? args[1] : args[0] === 't' || args[0] === 'tst' ? 'test' : args[0]
    if (name === undefined) return
    this.#scripts ??= await this.#readScripts()
    for (const script of [`pre${name}`, name, `post${name}`]) {
      const text = Object.hasOwn(this.#scripts, script) ? this.#scripts[script] : undefined
      if (typeof text !== 'string' || this.#seen.has(`npm ${script}`)) continue
      this.#seen.add(`npm ${script}`)
      await this.follow(text)
    }
  }

  async #readScripts(): Promise<Readonly<Record<string, unknown>>> {
    try {
      const parsed: unknown = JSON.parse((await readSmall(join(this.#cwd, 'package.json'))) ?? '{}')
      return { ...(parsed as { scripts?: Record<string, unknown> }).scripts }
    } catch {
      return {}
    }
  }

  async #makefile(): Promise<void> {
    for (const name of ['GNUmakefile', 'makefile', 'Makefile']) {
      const text = this.#seen.has(name) ? null : await readSmall(join(this.#cwd, name))
      if (text === null) continue
      this.#seen.add(name)
      await this.follow(text.replaceAll(/^\t[@-]*/gm, ''))
      return
    }
  }

  /** A file given to a shell. */
  async #script(word: string | undefined): Promise<void> {
    const path = word === undefined ? null : this.#path(word)
    if (path === null || this.#seen.has(path)) return
    this.#seen.add(path)
    const text = await readSmall(join(this.#cwd, path))
    if (text === null) return
    this.files.add(path)
    await this.follow(text)
  }

  /** A file that is run by its path: a script when it says so, else a built program. */
  async #program(word: string): Promise<void> {
    const path = this.#path(word)
    if (path === null) return
    if ((await readSmall(join(this.#cwd, path)))?.startsWith('#!') === true) await this.#script(path)
  }

  /** `word` relative to the workspace with forward slashes; null when it is no path within it. */
  #path(word: string): string | null {
    if (!/^[\w@./*?{},+ -]+$/.test(word)) return null
    const path = posix.normalize(isAbsolute(word) ? relative(this.#cwd, word) : word)
    return path === '.' || path.startsWith('..') || isAbsolute(path) ? null : path.replace(/\/$/, '')
  }
}

/** The text of a small regular file, or null. */
export async function readSmall(path: string): Promise<string | null> {
  let file
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    return null
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > MAX_TEXT_BYTES) return null
    const content = await file.readFile()
    return content.includes(0) ? null : content.toString('utf8')
  } catch {
    return null
  } finally {
    await file.close()
  }
}
