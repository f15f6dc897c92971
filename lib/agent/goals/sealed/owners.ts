/**
 * Who owns a file that a run has changed: the check, or the run. A sealed check has what the check
 * owns as it was at the start.
 *
 * 1. The table is ordered: the first rule that applies decides.
 * 2. Of a file that was there at the start, its text of the start counts. Code that the run has
 *    changed claims no file of the start that it did not name before.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { LongWork } from '../../../internal/time.js'
import type { ChangedFile } from '../../check-files.js'
import { unreadable } from '../../exhaustion.js'
import type { GoalBaseline, GoalSpec } from '../../goal.js'
import { compileGlobs } from '../../workspace/globs.js'
import { foldersAbove } from '../../workspace/net-changes.js'
import { isSameContent } from '../package-hash.js'
import { hasRelevantPart, hashRelevantPart } from '../relevant-part.js'
import { shellCommands } from '../shell-commands.js'
import {
  isCheckingName, isConfiguration, isDelivered, isDocument, isFixtureName, isInCodeFolder,
  isInputName, isInTestTree, isMainName, isMockFolder, isNeverOfChecks, isPage, isProse,
  isSnapshot, isSupport, isTestName, isWorkName, languageOf, shebang, stemOf, subjectOf,
  withoutExtension,
} from './file-kinds.js'
import { includedByMake, targetsOfMake, rulesOfMake } from './make-results.js'
import { programFolders, shadowsProgram } from './program-folders.js'
import { nameKey } from './references.js'
import type { TextReader } from './read-texts.js'
import { isSystemHeader, shadowsFilesOf, shadowsPythonModules } from './shadows.js'
import { definesTests, testLibraryIn } from './test-texts.js'
import { whoNames, type Side, type Texts, type WhoNames } from './who-names.js'

/** The rules in their order, each with the owner; `docs/goals.md` prints them. */
export const OWNERS: { readonly [R in Rule]: readonly [owner: 'check' | 'run', files: string] } = {
  settings: [
    'check',
    'settings of runners and tools, makefiles, plugins, mocks, what tools remember of earlier ' +
      'runs; manifests such as `package.json`, if a part has changed that decides a check',
  ],
  test: [
    'check',
    'folders of tests, snapshots; tests by the patterns of runners, what the runner reported at ' +
      'the first check and the rest of its folder, unless code imports it',
  ],
  subject: [
    'run',
    'a program that the command names, if tests import it, or if scripts of the check use ' +
      'nothing but what its functions print',
  ],
  named: [
    'check',
    'other scripts of a shell that the command runs, and programs that it names if they assert, ' +
      'start other programs or are called like a check; what the goal protects',
  ],
  shadow: [
    'check', 'a new file that is loaded in place of one of the check, of a library or of a program',
  ],
  result: [
    'check',
    'what the check makes: files that its scripts write, targets of make, compiled programs, ' +
      'folders of output if it builds',
  ],
  helper: [
    'check',
    'a program that no code imports and that no test is named after, if it imports a runner or ' +
      'an assertion library, or if tests import it from a folder of fixtures, cases or helpers; ' +
      'a header of C or C++ that nothing but tests includes',
  ],
  code: ['run', 'any other program'],
  asked: [
    'run',
    'new data that the check names, data in a project without code, and data that scripts only ' +
      'read with `grep`, `test`, `ls`, `cat`, `wc`, `head`, `tail`, `stat` or `jq`',
  ],
  prose: [
    'run',
    'documents (`.md`, `.rst`, `.adoc`) that no test names; other prose, pages, lock files and ' +
      'other manifests; unless a script compares them, or their name or folder is one of ' +
      'fixtures or cases',
  ],
  fixture: ['check', 'data that the check names, or whose folder it names'],
  data: ['run', 'data that code names, or whose folder it names'],
  rest: ['check', 'everything else'],
}

export type Rule =
  | 'settings' | 'test' | 'subject' | 'named' | 'shadow' | 'result' | 'helper' | 'code' | 'asked'
  | 'prose' | 'fixture' | 'data' | 'rest'

/** A workspace, and the check that was made in it. */
export interface OwnersOptions extends Texts {
  readonly goal: GoalSpec
  readonly baseline: GoalBaseline
  readonly root: string
  /** Files of tests that no pattern names, as the runner reported them at the first check. */
  readonly reported: readonly string[]
}

/**
 * The rule that decides who owns each changed file.
 *
 * @throws the signal's reason when it is aborted.
 */
export async function ownersOf(
  changed: readonly ChangedFile[],
  options: OwnersOptions,
): Promise<ReadonlyMap<string, Rule>> {
  const found = new Map<string, Rule>()
  if (changed.length === 0) return found
  const reported: string[] = []
  for (const path of options.reported) {
    // Code may have tests in itself, such as samples in its documentation.
    const text = languageOf(path) === 'python' ? await options.atStart(path) : null
    if (!isInCodeFolder(path) && (text === null || definesTests(text))) reported.push(path)
  }
  const variables = Object.entries(options.goal.env).map(([name, value]) => `${name}=${value}`)
  const script = [options.script, ...variables].join('\n')
  const owners = new Owners(changed, { ...options, reported, script })
  const work = new LongWork()
  for (const file of changed) {
    if (work.isDue) await work.next()
    options.signal.throwIfAborted()
    found.set(file.path, await owners.ruleFor(file))
  }
  return found
}

class Owners {
  readonly #options: OwnersOptions
  readonly #changed: ReadonlyMap<string, ChangedFile>
  readonly #kinds: ReadonlyMap<string, string>
  readonly #reported: ReadonlySet<string>
  /** Folders of reported tests. */
  readonly #testFolders: ReadonlySet<string>
  readonly #isProtected: (path: string) => boolean
  readonly #isSealed: (path: string) => boolean
  /** Files of the check, as far as names and the goal tell. */
  readonly #ofCheck: readonly string[]
  /** What tests are about, by their names. */
  readonly #subjects: ReadonlySet<string>
  /** Folders above them. */
  readonly #above: ReadonlySet<string>
  #names: Promise<WhoNames> | undefined
  #newFiles: Promise<NewFileRules> | undefined

  constructor(changed: readonly ChangedFile[], options: OwnersOptions) {
    const { baseline, files, goal, reported } = options
    this.#reported = new Set(reported)
    const folders = reported.map((path) => posix.dirname(path))
    this.#testFolders = new Set(folders.filter((one) => one !== '.'))
    this.#options = options
    this.#changed = new Map(changed.map((one) => [one.path, one]))
    this.#kinds = new Map(files.map(({ path, kind }) => [path, kind]))
    this.#isProtected = compileGlobs(goal.protected)
    this.#isSealed = compileGlobs(goal.sealed ?? [])
    const named = files.flatMap(({ path }) =>
      !this.#isNew(path) && (isOfTests(path) || this.#reported.has(path) || isSettings(path))
        ? [path] : [],
    )
    this.#ofCheck = [...new Set([...Object.keys(baseline.files), ...named])]
    this.#subjects = new Set(named.filter(isOfTests).map(subjectOf))
    this.#above = new Set(this.#ofCheck.flatMap(foldersAbove))
  }

  async ruleFor({ path, isNew }: ChangedFile): Promise<Rule> {
    const isManifest = hasRelevantPart(posix.basename(path))
    if (isSettings(path) || this.#isCacheOrOutside(path)) return 'settings'
    if (isInTestTree(path) || isSnapshot(path)) return 'test'
    // A command of a tool may be called test, too.
    if (isTestName(path) && !(await this.#isImported(path, isNew))) return 'test'
    if (!isManifest && this.#isFrozen(path))
      return (await this.#isSubject(path)) ? 'subject' : 'named'
    if (await this.#isReported(path)) return 'test'
    if (isManifest) return (await this.#configures(path, isNew)) ? 'settings' : 'prose'
    if (this.#isProtected(path) && !isTestName(path)) return 'named'
    const special = isNew ? await this.#newRule(path) : null
    if (special !== null) return special
    const text = await this.#text(path, isNew)
    const isProgram = languageOf(path) !== 'data' || (text !== null && shebang(text) !== null)
    if (await this.#isResult(path, isNew, text)) return 'result'
    if (isProgram) return await this.#programRule(path, text, isNew)
    return await this.#dataRule(path, isNew)
  }

  /** Is this a folder of results that tools would take over, or a link that leads out? */
  #isCacheOrOutside(path: string): boolean {
    const isCached = [path, ...foldersAbove(path)].some((one) => this.#kinds.get(one) === 'cache')
    return isCached || this.#kinds.get(path) === 'link outside'
  }

  async #isReported(path: string): Promise<boolean> {
    if (!this.#reported.has(path)) {
      const isBeside = foldersAbove(path).some((one) => this.#testFolders.has(one))
      if (!isBeside || isInCodeFolder(path) || isProse(path)) return false
    }
    return !(await this.#isImported(path, false))
  }

  async #isImported(path: string, isNew: boolean): Promise<boolean> {
    const { codeAtStart, codeNow } = await this.#whoNames()
    return (isNew ? codeNow : codeAtStart).refersTo(path)
  }

  #isNew(path: string): boolean {
    return this.#changed.get(path)?.isNew === true
  }

  #isFrozen(path: string): boolean {
    return Object.hasOwn(this.#options.baseline.files, path)
  }

  #text(path: string, isNew: boolean): Promise<string | null> {
    return isNew ? this.#options.now(path) : this.#options.atStart(path)
  }

  #whoNames(): Promise<WhoNames> {
    const sideOf = (path: string, text: string): Side => {
      if (isOfTests(path) || this.#reported.has(path)) return 'test'
      if (isSettings(path)) return 'settings'
      const isFrozen = this.#isFrozen(path)
      const isOfCheck = isFrozen || testLibraryIn(text) !== null || this.#checks(path, text)
      return isOfCheck ? 'check' : 'code'
    }
    return (this.#names ??= whoNames(this.#changed.keys(), this.#options, sideOf))
  }

  /** Is this a program that the command names, and that compares something or starts others? */
  #checks(path: string, text: string): boolean {
    if (!this.#options.script.includes(nameKey(path)) || isInCodeFolder(path)) return false
    if (STARTS_OTHERS.test(text) && !isMainName(path)) return true
    return isCheckingName(path) || importsAssertions(text) || /^[ \t]*assert[ (]/m.test(text)
  }

  async #isSubject(path: string): Promise<boolean> {
    const language = languageOf(path)
    if (isOfTests(path) || isSettings(path) || language === 'data') return false
    if (language !== 'shell') return (await this.#whoNames()).tests.refersTo(path)
    const text = await this.#options.atStart(path)
    return text !== null && usesOutputOnly(this.#options.script.replace(text, ''), text)
  }

  /** Does a change of this manifest decide about the check? */
  async #configures(path: string, isNew: boolean): Promise<boolean> {
    const name = posix.basename(path)
    const { atStart, now } = this.#options
    const partOf = (text: string | null): string =>
      hashRelevantPart(name, text ?? NO_SCRIPTS) ?? hashRelevantPart(name, NO_SCRIPTS) ?? ''
    if (!isSameContent(partOf(await atStart(path)), partOf(await now(path)))) return true
    // A package.json decides how all files below it are loaded.
    return isNew && name === 'package.json' && this.#above.has(posix.dirname(path))
  }

  async #newRule(path: string): Promise<'settings' | 'shadow' | 'result' | null> {
    const { isIncluded, isMade, isShadow, programs } = await this.#rulesForNew()
    if (this.#isSealed(path) || isIncluded(path)) return 'settings'
    if ((await this.#whoNames()).optional.names(path)) return 'settings'
    if ([path, ...foldersAbove(path)].some(isMade)) return 'result'
    if (this.#above.has(path) || isShadow(path) || (await this.#hidesOther(path))) return 'shadow'
    return (await shadowsProgram(path, programs)) ? 'shadow' : null
  }

  /** Is it what the check gets in place of another: `cases.js` of `cases.json`? */
  async #hidesOther(path: string): Promise<boolean> {
    const { check, codeAtStart } = await this.#whoNames()
    if (!check.refersTo(path) || codeAtStart.refersTo(path)) return false
    if (languageOf(path) === 'python')
      return (await this.#rulesForNew()).modules.has(moduleName(path))
    const isBeside = [path, withoutExtension(path)].some((one) => this.#kinds.has(`${one}.json`))
    return isBeside && posix.extname(path) !== '.json'
  }

  #rulesForNew(): Promise<NewFileRules> {
    return (this.#newFiles ??= this.#findRules())
  }

  async #findRules(): Promise<NewFileRules> {
    const { atStart, files, goal, root, script } = this.#options
    const texts: Pick<TextReader, 'read'> = { read: atStart }
    const make = await rulesOfMake(this.#ofCheck, texts)
    const targets = targetsOfMake(make)
    const ofFiles = shadowsFilesOf(this.#ofCheck)
    const paths = files.map(({ path }) => path)
    const kept = paths.filter((path) => !this.#isNew(path))
    // A package may take the place of a module, unless that is put back.
    const [moved, back]: [string[], string[]] = [[], []]
    for (const file of this.#changed.values()) {
      if (!file.isGone || languageOf(file.path) !== 'python') continue
      const [owner] = OWNERS[await this.ruleFor(file)]
      ;(owner === 'run' ? moved : back).push(file.path)
    }
    const modules = [...kept, ...back].filter((path) => languageOf(path) === 'python')
    const ofPython = await shadowsPythonModules({
      root, goal, texts, baseline: this.#ofCheck, files: new Set(paths),
      kept: new Set([...kept, ...moved]),
    })
    return {
      isIncluded: includedByMake(make),
      modules: new Set(modules.map(moduleName)),
      isMade: (path) => targets.has(path),
      isShadow: (path) => ofFiles(path) || ofPython(path) || isSystemHeader(path),
      programs: await programFolders(script, this.#ofCheck, texts),
    }
  }

  async #isResult(path: string, isNew: boolean, text: string | null): Promise<boolean> {
    const { root, script } = this.#options
    if (writes(script, path) || (OUTPUT.test(path) && BUILDS.test(script))) return true
    if (text !== null) return false
    if (COMPILED.test(path)) return true
    const stats = isNew ? await lstat(join(root, path)).catch(unreadable) : null
    return stats?.isFile() === true && (stats.mode & 0o111) !== 0
  }

  async #programRule(path: string, text: string | null, isNew: boolean): Promise<Rule> {
    const { check, codeAtStart, codeNow, script, settings, tests } = await this.#whoNames()
    if (await this.#isImported(path, isNew)) return 'code'
    const isNamed = !isNew && text !== null && script.names(path)
    if (isNamed && (this.#checks(path, text) || isEvaluated(this.#options.script, path)))
      return 'named'
    const isLoaded = settings.refersTo(path) && !tests.refersTo(path)
    if (!isNew && isLoaded && !isInCodeFolder(path) && !isWorkName(path)) return 'settings'
    if (this.#subjects.has(stemOf(path))) return 'code'
    if (text !== null && importsAssertions(text)) return 'helper'
    // The compiler looks for headers in folders that only the makefile knows.
    const code = isNew ? codeNow : codeAtStart
    if (HEADER.test(path) && tests.names(path) && !code.names(path)) return 'helper'
    return isSupport(path) && check.refersTo(path) ? 'helper' : 'code'
  }

  async #dataRule(path: string, isNew: boolean): Promise<Rule> {
    const { check, codeAtStart, codeNow, hasCode, script, tests } = await this.#whoNames()
    const isForChecks = isFixtureName(path) || isInputName(path)
    if (!hasCode && !isFixtureName(path)) return 'asked'
    const use = script.names(path) ? useOf(this.#options.script, path) : null
    if (use === 'look' || (isNew && (use !== null || check.names(path)))) return 'asked'
    const isSample = isDocument(path) && tests.names(path)
    const isPlain = !isForChecks && !isSample && use !== 'compare'
    if (isPlain && (isDelivered(path) || isPage(path) || isNeverOfChecks(path))) return 'prose'
    if (use !== null) return 'fixture'
    if (check.has(path) || script.has(path)) return 'fixture'
    return (isNew ? codeNow : codeAtStart).has(path) ? 'data' : 'rest'
  }
}

/** A package.json without anything that decides a check. */
const NO_SCRIPTS = '{"scripts":{}}'

/** What decides about new files only. */
interface NewFileRules {
  /** Would a makefile include it? */
  readonly isIncluded: (path: string) => boolean
  /** Would make take it for made? */
  readonly isMade: (path: string) => boolean
  readonly isShadow: (path: string) => boolean
  /** Names of the Python modules that are there besides new ones. */
  readonly modules: ReadonlySet<string>
  /** Folders in which scripts look for programs first. */
  readonly programs: readonly string[]
}

/** Is this a test by its name, or in a folder of tests by that? */
export function isOfTests(path: string): boolean {
  return isTestName(path) || isInTestTree(path)
}

/** The name of a Python module; of a package for its `__init__.py`. */
function moduleName(path: string): string {
  const stem = stemOf(path)
  return stem === '__init__' ? posix.basename(posix.dirname(path)) : stem
}

const LOADED_UNASKED =
  /^(?:(?:conftest|sitecustomize|usercustomize)\.py|entry_points\.txt|.+\.(?:pth|egg-link|py[co]))$/
const REMEMBERED = /\.tsbuildinfo$|^\.(?:eslint|stylelint|prettier)cache$/

function isSettings(path: string): boolean {
  const name = posix.basename(path)
  if (isConfiguration(path) || languageOf(path) === 'make') return true
  if (LOADED_UNASKED.test(name) || REMEMBERED.test(name)) return true
  return isMockFolder(path)
}

const ASSERTS = /['"](?:node:)?assert(?:\/strict)?['"]/

const STARTS_OTHERS =
  /['"](?:node:)?child_process['"]|^[ \t]*(?:import|from)[ \t]+subprocess\b|\bos\.system\(/m

/** Does it import what tests are made with? */
function importsAssertions(text: string): boolean {
  return testLibraryIn(text) !== null || ASSERTS.test(text)
}

const HEADER = /\.(?:h|hh|hpp|hxx|inc)$/
const COMPILED = /\.(?:o|obj|a|lib|so|dylib|dll|exe|class|jar|wasm|node|beam)$/
const OUTPUT = /(?:^|\/)(?:dist|build|out|lib-cov|target)\//
const BUILDS =
  /(?<![\w-])(?:tsc|build|esbuild|babel|swc|webpack|rollup|tsup|compile|make|cc|gcc|clang)(?![\w-])/

/** Does a script write this file? */
function writes(script: string, path: string): boolean {
  const name = nameKey(path)
  if (!script.includes(name)) return false
  const escaped = name.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const place = String.raw`(?:>|\btee(?:[ \t]+-a)?)[ \t]*["']?(?:[\w.$/-]{0,200}/)?`
  return new RegExp(`${place}${escaped}(?![\\w.-])`).test(script)
}

const LOOKS = /^(?:[efz]?grep|test|\[|ls|cat|wc|head|tail|stat|jq)$/
const COMPARES = /^(?:diff|cmp|comm)$/
const KEYWORD = /^(?:!|if|elif|else|then|while|until|do|time)$/

/**
 * What a script does with a file that it names: it looks into it and runs nothing else, compares
 * something with it, or gives it to a program.
 */
function useOf(script: string, path: string): 'look' | 'compare' | 'give' {
  const name = nameKey(path)
  const uses = script.split(/\n|;|&&|\|\|/).filter((one) => one.includes(name)).map(useIn)
  if (uses.includes('compare')) return 'compare'
  return uses.includes('give') ? 'give' : 'look'
}

function useIn(statement: string): 'look' | 'compare' | 'give' {
  const programs = shellCommands(statement).flatMap(({ runs, words }) => {
    const first = words.find(({ text }) => !KEYWORD.test(text))
    return runs && first !== undefined ? [first.text] : []
  })
  if (programs.some((one) => COMPARES.test(one))) return 'compare'
  const looking = programs.filter((one) => LOOKS.test(one)).length
  // A part of a longer command, such as the end of a loop.
  const isWhole = statement.split('(').length === statement.split(')').length
  if (looking === programs.length && isWhole) return 'look'
  return looking > 0 ? 'compare' : 'give'
}

const MAX_FUNCTIONS = 200

/** Does a script run what this program prints? */
function isEvaluated(script: string, path: string): boolean {
  const name = nameKey(path)
  const statements = script.split('\n').filter((one) => one.includes(name))
  return statements.some((one) => /(?<![\w-])eval(?![\w-])|(?:\.|source)[ \t]+<\(/.test(one))
}

/** Do scripts use nothing of a library but what its functions print, as in `"$(total 1 2)"`? */
function usesOutputOnly(scripts: string, library: string): boolean {
  const defined = library.matchAll(/^[ \t]*(?:function[ \t]+)?([\w-]{1,80})[ \t]*\(\)/gm)
  const names = [...defined].map(([, name]) => name!).slice(0, MAX_FUNCTIONS)
  let isUsed = false
  for (const name of names) {
    for (const { index } of scripts.matchAll(new RegExp(`(?<![\\w-])${name}(?![\\w-])`, 'g'))) {
      const before = scripts.slice(Math.max(0, index - 2), index)
      if (before !== '$(' && !before.endsWith('`')) return false
      isUsed = true
    }
  }
  return isUsed
}
