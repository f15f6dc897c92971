/**
 * New files that a runner, or what it starts, loads without being told to by the files of the
 * check: a sealed check leaves them out.
 *
 * 1. Only names and places decide, and only of files that are neither in the baseline nor were
 *    there when the run started. Ordinary new modules of the work always stay.
 * 2. A new file that looks like a test by name only, and that code imports, stays: what code does
 *    itself it may do in a file as well.
 * 3. Caches are left out whenever they were made: a tool would take their word for its own.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import { unreadable } from '../../exhaustion.js'
import type { GoalBaseline, GoalSpec } from '../../goal.js'
import { compileGlobs } from '../../workspace/globs.js'
import { hasRelevantPart, hashRelevantPart } from '../relevant-part.js'
import {
  hasHelperWord, isCodeFolder, isConfiguration, isInTestTree, isMockFolder,
  isNeverOfChecks, isTestName, isToolConfiguration, languageOf, mayHoldTests, stemOf,
} from './file-kinds.js'
import { groupBy } from './group-by.js'
import { listFiles, type ListedFile } from './list-files.js'
import { optionalFilesIn, optionalInShell } from './presence.js'
import { includedByMake, madeOfNothing, rulesOfMake } from './make-results.js'
import type { MakeRules } from './make-rules.js'
import { programFolders, shadowsProgram } from './program-folders.js'
import { TextReader } from './read-texts.js'
import { nameKey, ReferenceFinder } from './references.js'
import { foldersAbove, shadowsFilesOf, shadowsPythonModules, type ShadowTest } from './shadows.js'
import { looksLikeTest } from './test-texts.js'

/** Why a sealed check leaves out a new file. */
export type LeftOutReason =
  | 'new test'
  | 'configuration'
  | 'plugin'
  | 'helper of tests'
  | 'shadows a module'
  | 'shadows a program'
  | 'looks like a result'

/** What {@link filesToLeaveOut} looks at. */
export interface NewFilesOptions {
  /** Folder of the copy. */
  readonly root: string
  readonly goal: GoalSpec
  readonly baseline: GoalBaseline
  /** What was there when the run started, and is therefore never left out. */
  readonly kept: ReadonlySet<string>
  readonly signal?: AbortSignal | undefined
}

/**
 * Files in `root` that a runner or a check would load by itself and that are not in the baseline:
 * what a sealed check leaves out. Links count as files, and a cache is told as one folder. Called
 * on the folder as it was at the start, it tells what was there before: the `kept` of later calls.
 *
 * @throws {@link GoalError} when there are too many files; the signal's reason when it is aborted.
 */
export async function filesToLeaveOut(
  options: NewFilesOptions,
): Promise<Map<string, LeftOutReason>> {
  const { root, goal, baseline, kept, signal } = options
  const files = await listFiles(root, signal)
  const texts = new TextReader(root)
  const known = Object.keys(baseline.files)
  const make = await rulesOfMake(known, texts)
  const rules = new Rules(goal, known, await foldersOfTests(known, texts), texts, make)
  rules.programFolders = await programFolders(goal.command, known, texts)
  const isFresh = (path: string): boolean =>
    !Object.hasOwn(baseline.files, path) && !kept.has(path)
  const fresh = files.filter(
    ({ path, kind }) => kind === 'cache' || isMemory(path) || isFresh(path),
  )
  rules.shadowsPython = await shadowsPythonModules({
    root, goal, baseline: known, kept, files: new Set(files.map(({ path }) => path)), texts,
  })
  const found = new Map<string, LeftOutReason>()
  const work = new LongWork()
  for (const file of fresh) {
    if (work.isDue) await work.next()
    signal?.throwIfAborted()
    const reason = await rules.reasonFor(file)
    if (reason !== null) found.set(file.path, reason)
  }
  await addFolders(root, madeOfNothing(make), kept, found)
  const optional = await optionalAmong(fresh.map(({ path }) => path), known, texts)
  for (const path of optional) if (!found.has(path)) found.set(path, 'configuration')
  const doubtful = [...found.keys()].filter(
    (path) => optional.has(path) || isOftenCode(path, found.get(path)!),
  )
  for (const path of await importedByCode(doubtful, files, texts, signal)) found.delete(path)
  return found
}

/** Those of `paths` that programs of the check look for, and can do without. */
async function optionalAmong(
  paths: readonly string[],
  baseline: readonly string[],
  texts: TextReader,
): Promise<ReadonlySet<string>> {
  const programs = baseline.filter(
    (path) => /^(?:javascript|python|shell)$/.test(languageOf(path)) || posix.extname(path) === '',
  )
  const asking = new Map<string, string>()
  for (const path of programs.filter((one) => !one.includes('node_modules/')).slice(0, MAX_TEXTS)) {
    const isOther = /^(?:javascript|python)$/.test(languageOf(path))
    const parts = (isOther ? optionalFilesIn : optionalInShell)((await texts.read(path)) ?? '')
    if (parts.length > 0) asking.set(path, parts.join('\n'))
  }
  const found = new Set<string>()
  if (asking.size === 0) return found
  const fresh = paths.filter((path) => !isNeverOfChecks(path))
  const finder = await ReferenceFinder.to({ paths: fresh })
  const named = new Set<string>()
  for (const [path, text] of asking) {
    const { files, names } = await finder.find(path, text, languageOf(path))
    for (const file of files) found.add(file)
    for (const name of names) named.add(name)
  }
  const work = new LongWork()
  for (const path of fresh) {
    if (work.isDue) await work.next()
    if (named.has(nameKey(path))) found.add(path)
  }
  return found
}

/** Adds the folders among these paths, in place of what is in them. */
async function addFolders(
  root: string,
  paths: Iterable<string>,
  kept: ReadonlySet<string>,
  found: Map<string, LeftOutReason>,
): Promise<void> {
  for (const path of paths) {
    const stats = kept.has(path) ? null : await lstat(join(root, path)).catch(unreadable)
    if (stats?.isDirectory() !== true) continue
    for (const one of found.keys()) if (one.startsWith(`${path}/`)) found.delete(one)
    found.set(path, 'looks like a result')
  }
}

/** What a tool remembers of the last time, in a file. */
function isMemory(path: string): boolean {
  return /\.tsbuildinfo$|^\.(?:eslint|stylelint|prettier)cache$/.test(posix.basename(path))
}

/** A module of the work may have such a name. */
function isOftenCode(path: string, reason: LeftOutReason): boolean {
  if (isInTestTree(path) || languageOf(path) === 'data') return false
  if (reason === 'new test') return !/[.](?:test|spec)\.\w+$/.test(path) && isTestName(path)
  return reason === 'configuration' && !isToolConfiguration(path)
}

/** Those of `paths` to which code of the workspace refers that is no test. */
async function importedByCode(
  paths: readonly string[],
  files: readonly ListedFile[],
  texts: TextReader,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  if (paths.length === 0) return found
  const finder = await ReferenceFinder.to({ paths })
  const work = new LongWork()
  for (const { path, kind } of files) {
    if (work.isDue) await work.next()
    signal?.throwIfAborted()
    const isCode = kind === 'file' && /^(?:javascript|python)$/.test(languageOf(path))
    if (!isCode || isInTestTree(path) || isTestName(path) || isNeverOfChecks(path)) continue
    const text = await texts.read(path)
    if (text === null) continue
    for (const file of (await finder.find(path, text, languageOf(path))).files) found.add(file)
  }
  return found
}

const MAX_TEXTS = 1_000

/** Folders that hold tests of the check beyond those known by name, such as `qa`. */
async function foldersOfTests(
  baseline: readonly string[],
  texts: TextReader,
): Promise<ReadonlySet<string>> {
  const odd = baseline
    .filter((path) => ['javascript', 'python'].includes(languageOf(path)))
    .filter((path) => !isTestName(path) && !isInTestTree(path) && !isConfiguration(path))
    .filter((path) => path.includes('/') && !path.startsWith('node_modules/'))
  const found = new Set<string>()
  for (const [folder, paths] of groupBy(odd.slice(0, MAX_TEXTS), posix.dirname)) {
    if (isCodeFolder(folder)) continue
    for (const path of paths) {
      if (found.has(folder)) break
      const text = await texts.read(path)
      if (text !== null && (looksLikeTest(text) || mayHoldTests(folder))) found.add(folder)
    }
  }
  return found
}

class Rules {
  shadowsPython: ShadowTest = () => false
  programFolders: readonly string[] = []
  readonly #shadows: ShadowTest
  readonly #isSealed: (path: string) => boolean
  readonly #isProtected: (path: string) => boolean
  readonly #folders: ReadonlySet<string>
  /** Folders with files of the check below them. */
  readonly #above: ReadonlySet<string>
  readonly #texts: TextReader
  readonly #isIncluded: (path: string) => boolean
  readonly #results: ReadonlySet<string>

  constructor(
    goal: GoalSpec,
    baseline: readonly string[],
    folders: ReadonlySet<string>,
    texts: TextReader,
    make: ReadonlyMap<string, MakeRules>,
  ) {
    this.#isIncluded = includedByMake(make)
    this.#results = madeOfNothing(make)
    this.#shadows = shadowsFilesOf(baseline)
    this.#isSealed = compileGlobs(goal.sealed ?? [])
    this.#isProtected = compileGlobs(goal.protected)
    this.#folders = folders
    this.#above = new Set(baseline.flatMap(foldersAbove))
    this.#texts = texts
  }

  async reasonFor({ path, kind }: ListedFile): Promise<LeftOutReason | null> {
    if (kind === 'cache') return 'shadows a module'
    // In the place of a folder of the check, or of files that nobody has looked at.
    if (this.#above.has(path) || kind === 'link outside') return 'shadows a module'
    const name = posix.basename(path)
    if (/\.py[co]$/.test(name)) return 'shadows a module'
    if (isMemory(path) || this.#isIncluded(path)) return 'configuration'
    if (this.#results.has(path)) return 'looks like a result'
    if (await this.#isPlugin(path)) return 'plugin'
    if (hasRelevantPart(name)) return (await this.#configures(path)) ? 'configuration' : null
    if (isTestName(path)) return 'new test'
    if (this.#isSealed(path)) {
      return languageOf(path) === 'python' ? 'shadows a module' : 'configuration'
    }
    if (isConfiguration(path)) return 'configuration'
    if (this.#shadows(path) || this.shadowsPython(path) || isSystemHeader(path)) {
      return 'shadows a module'
    }
    if (await shadowsProgram(path, this.programFolders)) return 'shadows a program'
    return this.#ofTests(path)
  }

  #ofTests(path: string): LeftOutReason | null {
    if (isMockFolder(path) || /^setup-?tests?$/i.test(stemOf(path))) return 'helper of tests'
    const beside = foldersAbove(path).find((one) => this.#folders.has(one))
    if (beside === undefined && !(isInTestTree(path) && this.#isProtected(path))) return null
    if (beside !== undefined && isNeverOfChecks(path)) return null
    // The outer names of a folder of tests say nothing about helpers.
    const inside = beside === undefined ? belowTestTree(path) : path.slice(beside.length + 1)
    const isCode = ['javascript', 'python'].includes(languageOf(path))
    const isTest = isCode && !hasHelperWord(inside) && stemOf(path) !== '__init__'
    return isTest ? 'new test' : 'helper of tests'
  }

  async #isPlugin(path: string): Promise<boolean> {
    const name = posix.basename(path)
    if (/^(?:conftest|sitecustomize|usercustomize)\.py$|\.(?:pth|egg-link)$/.test(name)) return true
    if (name !== 'entry_points.txt' || !/[.-](?:dist|egg)-info\//.test(path)) return false
    const text = await this.#texts.read(path)
    const sections = (text ?? '').split('\n').filter((line) => line.startsWith('['))
    const ofPrograms = new Set(['[console_scripts', '[gui_scripts'])
    return sections.length === 0 || sections.some((line) => !ofPrograms.has(line.split(']', 1)[0]!))
  }

  async #configures(path: string): Promise<boolean> {
    const name = posix.basename(path)
    const text = await this.#texts.read(path)
    if (text === null || hashRelevantPart(name, text) !== null) return true
    // A package.json decides how all files below it are loaded.
    const folder = posix.dirname(path)
    if (name !== 'package.json' || folder === '.') return false
    return this.#above.has(folder) || isInTestTree(path)
  }
}

/** A compiler looks into the folders that it is given first. */
function isSystemHeader(path: string): boolean {
  return SYSTEM_HEADER.test(posix.basename(path))
}
const SYSTEM_HEADER = new RegExp(
  '^c?(?:assert|ctype|errno|float|inttypes|limits|locale|math|setjmp|signal|stdarg|stdbool|' +
    'stddef|stdint|stdio|stdlib|string|time|unistd)(?:\\.h)?$',
)

function belowTestTree(path: string): string {
  const parts = path.split('/')
  return parts.slice(parts.findIndex((part) => TEST_TREE.test(part)) + 1).join('/')
}
const TEST_TREE = /^(?:tests?|specs?|__tests__|__snapshots__|testdata)$/
