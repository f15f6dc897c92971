/**
 * What there is to know of a check before it is decided what belongs to it: its programs with what
 * they refer to, what its command runs, what settings name. Texts come from the workspace: they are
 * bounded, read in slices, and never run.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import { unreadable } from '../../exhaustion.js'
import type { GoalSpec } from '../../goal.js'
import { sampleKey, samplesIn } from '../relevant-part.js'
import { pythonPlugins, settingValues } from '../runner-files.js'
import {
  isConfiguration, isNeverOfChecks, isProse, isTestName, languageOf, shebang, type Language,
} from './file-kinds.js'
import { importsIn, type Import } from './imports.js'
import { judgesIn } from './judging.js'
import { indexFiles, readPackage, type PackageFacts } from './package-facts.js'
import { TextReader } from './read-texts.js'
import { isPlainPath, pythonPath } from './python-path.js'
import { PYTHON_MODULE, ReferenceFinder, type Places, type References } from './references.js'
import { COMPARES, optionValues, programsBeside, programsRun } from './script-facts.js'
import { definesTests, testLibraryIn, usesRunner } from './test-texts.js'

/** What a check was seen to do in a copy. */
export interface Observed {
  /** Folder in which the files can be read: the copy in which the check ran. */
  readonly root: string
  /** Relative paths of files that the check read, in any order. */
  readonly read: readonly string[]
  /** Files that it changed or made itself, which never belong to it. */
  readonly changed: readonly string[]
  /** Folders that were listed. */
  readonly listed: readonly string[]
  /** Files of tests as the runner reported them: first part of each test's name. */
  readonly testFiles: readonly string[]
  readonly goal: GoalSpec
  /** Its command and the scripts that it leads to. */
  readonly script: string
  /** Paths that are known to belong already (`GoalBaseline.files`). */
  readonly known: ReadonlySet<string>
}

/** A program that was read: what it refers to, and what its text shows. */
export interface Program {
  readonly path: string
  readonly language: Language
  readonly refers: References
  /** Files that it imports; empty for programs that are not JavaScript. */
  readonly imports: ReadonlySet<string>
  /** Those of them that judge what the others return. */
  readonly judges: ReadonlySet<string>
  /** Gives something to all modules, where it cannot be told who uses it. */
  readonly setsGlobals: boolean
  /** Imports a library for tests. */
  readonly usesTestLibrary: boolean
  /** Code with tests in itself: documentation that is run, or tests beside the code. */
  readonly testsItself: boolean
  /** Compares something and fails. */
  readonly asserts: boolean
  /** Takes texts apart, as a test does that reads samples out of prose. */
  readonly takesApart: boolean
  /** Runs other programs. */
  readonly runs: boolean
  /** Runs what it finds in folders. */
  readonly runsListed: boolean
  /** Has functions that compare what they are given, and give nothing back. */
  readonly onlyCompares: boolean
  /** Expects what it calls to throw. */
  readonly expectsErrors: boolean
  /** Compares something as soon as it is loaded, and has nothing for others to use. */
  readonly isCase: boolean
}

/** All that is known of a check before it is decided what belongs to it. */
export interface Facts {
  readonly observed: Observed
  /** Files that may belong, without those known. */
  readonly files: readonly string[]
  /** Tests that the runner reported, and those that their text shows. */
  readonly reported: ReadonlySet<string>
  readonly programs: ReadonlyMap<string, Program>
  /** What the command and its scripts refer to. */
  readonly script: References
  /** True when the command starts a runner, or a program that checks by itself. */
  readonly isSimple: boolean
  /** Programs that the command runs. */
  readonly named: readonly string[]
  /** Modules that are loaded before tests, or around them: values of options and settings. */
  readonly setups: ReadonlySet<string>
  /** Programs that scripts of the package start beside the check. */
  readonly started: ReadonlySet<string>
  /** Programs that the command runs before and after the tests, and that build nothing. */
  readonly beside: readonly string[]
  /** Files that the settings of tools name. */
  readonly configured: ReadonlySet<string>
  readonly entries: ReadonlySet<string>
  /** Samples of code in prose, as names of parts, by file. */
  readonly samples: ReadonlyMap<string, readonly string[]>
  /** Entries to which only names such as `shop/testing` lead. */
  readonly exported: ReadonlySet<string>
}

const MAX_REPORTED = 50_000
/** Texts that are read at once. */
const BATCH = 16

function isWorthReading(path: string, known: ReadonlySet<string>): boolean {
  if (isNeverOfChecks(path) && !known.has(path)) return false
  // Programs may have no extension.
  return languageOf(path) !== 'data' || posix.extname(path) === '' || isConfiguration(path)
}

/**
 * Reads the programs that a check read, and what its command and settings name.
 *
 * @throws the signal's reason when it is aborted.
 */
export async function gatherFacts(
  observed: Observed,
  signal?: AbortSignal,
): Promise<Facts> {
  const { root, goal, known, script } = observed
  const changed = new Set(observed.changed)
  const texts = new TextReader(root)
  const named = await existing(root, new Set(observed.testFiles), new Set(observed.read))
  const all = new Set([...observed.read, ...named].filter(isPlainPath))
  const paths = [...all, ...changed].filter((path) => !path.split('/').includes('node_modules'))
  const { about, ...packages } = await readPackages(paths, texts)
  const finder = await ReferenceFinder.to({
    ...packages,
    paths,
    name: about.name,
    listed: new Set(observed.listed.map((folder) => posix.basename(folder))),
    // Only modules of Python are found by it.
    pythonPath: paths.some((path) => PYTHON_MODULE.test(path))
      ? await pythonPath(`${script}\nPYTHONPATH=${goal.env['PYTHONPATH'] ?? ''}`, texts)
      : [],
  })
  const programs = new Map<string, Program>()
  const reported = new Set(named)
  const configured = new Set<string>()
  const work = new LongWork()
  const note = async (path: string, text: string): Promise<void> => {
    for (const file of (await finder.find(path, text, 'data')).files) configured.add(file)
  }
  const worthReading = [...all].filter((path) => isWorthReading(path, known))
  for (let at = 0; at < worthReading.length; at += BATCH) {
    const paths = worthReading.slice(at, at + BATCH)
    const contents = await Promise.all(paths.map(async (path) => texts.read(path)))
    for (const [i, path] of paths.entries()) {
      if (work.isDue) await work.next()
      signal?.throwIfAborted()
      const text = contents[i]!
      if (text === null) continue
      const byName = languageOf(path)
      const language = byName === 'data' ? (shebang(text) ?? 'data') : byName
      if (isConfiguration(path)) await note(path, [...settingValues(text)].join('\n'))
      if (language === 'data') continue
      const refers = await finder.find(path, text, language)
      const imports = language === 'javascript' ? importsIn(text) : []
      if (usesRunner(text, imports) && !about.entries.has(path)) reported.add(path)
      const imported = importedBy(path, text, imports, finder)
      programs.set(path, { ...programOf(path, language, text, refers, about), ...imported })
    }
  }
  const samples = new Map<string, readonly string[]>()
  for (const path of [...all].filter(isProse).slice(0, MAX_PROSE)) {
    if (known.has(path) || changed.has(path)) continue
    const text = await texts.read(path)
    const found = samplesIn(text ?? '').map(sampleKey)
    if (found.length > 0) samples.set(path, found)
  }
  for (const path of await pluginsOf(observed, texts, finder, programs)) configured.add(path)
  await note('package.json', [...settingValues(about.tools), ...about.paths].join('\n'))
  for (const path of includedBy(programs)) configured.add(path)
  const builds = [...programs.values()].some(({ refers }) =>
    [...refers.files].some((path) => changed.has(path)),
  )
  const withVariables = [script, ...Object.values(goal.env)].join('\n')
  return {
    observed,
    files: [...all].filter((path) => !changed.has(path) && !known.has(path)),
    reported,
    programs,
    script: await finder.find('', script, 'shell'),
    isSimple: goal.reporter !== null || !COMPARES.test(script),
    named: goal.reporter === null ? programsRun(script, all) : [],
    setups: new Set([...configured, ...optionValues(withVariables, all)]),
    started: (await finder.find('', about.starts, 'shell')).files,
    beside: goal.reporter === null || builds ? [] : programsBeside(script, all),
    configured,
    entries: about.entries,
    samples,
    exported: about.exported,
  }
}

const MAX_PACKAGES = 500
const MAX_PROSE = 200

/** The package of the workspace, and what the names of all packages in it lead to. */
async function readPackages(
  paths: readonly string[],
  texts: TextReader,
): Promise<Required<Pick<Places, 'main' | 'packages' | 'aliases'>> & { about: PackageFacts }> {
  const files = indexFiles(paths)
  const about = readPackage(await texts.read('package.json'), files)
  const main = new Map([['', [...about.entries]]])
  const packages = new Map<string, string>()
  const aliases = new Map(about.aliases)
  const others = paths.filter((path) => path.endsWith('/package.json')).slice(0, MAX_PACKAGES)
  for (const path of others) {
    const folder = posix.dirname(path)
    const one = readPackage(await texts.read(path), files, folder)
    main.set(folder, [...one.entries])
    if (one.name === null) continue
    packages.set(one.name, folder)
    for (const [name, named] of one.aliases) if (!name.startsWith('#')) aliases.set(name, named)
  }
  return { about, main, packages, aliases }
}

const PYTEST_SETTINGS =
  /(?:^|\/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|pyproject\.toml|setup\.cfg|tox\.ini)$/

/**
 * Modules that pytest loads as plugins, and those beside them that they import; unless the
 * workspace is about plugins, and but for what tests import themselves.
 */
async function pluginsOf(
  { goal, known, script }: Observed,
  texts: TextReader,
  finder: ReferenceFinder,
  programs: ReadonlyMap<string, Program>,
): Promise<ReadonlySet<string>> {
  if (goal.reporter !== 'pytest') return new Set()
  for (const path of ['pyproject.toml', 'setup.cfg', 'setup.py']) {
    if ((await texts.read(path))?.includes('pytest11') === true) return new Set()
  }
  const found = new Set<string>()
  const names = async (from: string, text: string): Promise<void> => {
    const imports = pythonPlugins(text).map((name) => `import ${name}\n`)
    const { files } = await finder.find(from, imports.join(''), 'python')
    for (const path of files) if (!/__init__\.py$/.test(path)) found.add(path)
  }
  await names('', script)
  const settings = [...known].filter((path) => PYTEST_SETTINGS.test(path))
  for (const path of settings) await names(path, (await texts.read(path)) ?? '')
  const tested = new Set<string>()
  for (const { path, refers } of programs.values()) {
    if (isTestName(path)) for (const file of refers.files) tested.add(file)
  }
  // Grows while it is walked.
  for (const path of found) {
    if (tested.has(path)) found.delete(path)
    else for (const file of programs.get(path)?.refers.files ?? []) {
      const folder = posix.dirname(file)
      if (folder !== '.' && folder === posix.dirname(path)) found.add(file)
    }
  }
  return found
}

/** Reported names that are files. */
async function existing(
  root: string,
  names: ReadonlySet<string>,
  read: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (const name of [...names].slice(0, MAX_REPORTED)) {
    if (!isPlainPath(name) || name.includes('\0')) continue
    if (read.has(name)) found.add(name)
    else {
      const stats = await lstat(join(root, name)).catch(unreadable)
      if (stats?.isFile() === true) found.add(name)
    }
  }
  return found
}

const ASSERTS = new RegExp(
  [
    ...['\\bassert', '\\bexpect\\s?\\(', '(?:deep|strict)Equal', '\\bthrow\\b', '^[ \\t]*raise\\b'],
    ...['process\\.exit', '\\bsys\\.exit', '\\bexit[ (]+[1-9]', '\\bdie\\b'],
  ].join('|'),
  'm',
)

const TAKES_APART =
  /(?<!assert)\.(?:match|matchAll|exec|split|findall|finditer|splitlines)\(|```|\b(?:eval|exec)\(/

function programOf(
  path: string,
  language: Language,
  text: string,
  refers: References,
  about: PackageFacts,
): Omit<Program, keyof Imported> {
  const library = testLibraryIn(text)
  const isOurs = library !== null && about.name !== null && library.includes(about.name)
  const testsItself =
    language === 'python'
      ? text.includes('>>> ') && !definesTests(text)
      : /\bimport\.meta\.vitest\b/.test(text)
  const usesTestLibrary = library !== null && !isOurs
  return {
    path, language, refers, usesTestLibrary, testsItself,
    asserts: ASSERTS.test(text),
    takesApart: TAKES_APART.test(text),
    onlyCompares: onlyCompares(language, text),
    expectsErrors: /\b(?:raises|assertRaises\w*|throws|rejects|toThrow\w*)\b/.test(text),
    runs: RUNS.test(text),
    runsListed: LISTS.test(text) && RUNS.test(text),
    isCase:
      language === 'python'
        ? /^assert\b/m.test(text)
        : /\bassert/.test(text) && !EXPORTS.test(text),
  }
}

const SETS_GLOBALS = new RegExp(
  '\\b(?:global|globalThis|window|self)(?:\\.[\\w$]{1,80}|\\[[^\\]\\n]{1,80}\\])\\s{0,9}=(?!=)' +
    '|\\bassign\\(\\s{0,9}global',
)

type Imported = Pick<Program, 'imports' | 'judges' | 'setsGlobals'>

function importedBy(
  path: string,
  text: string,
  all: readonly Import[],
  finder: ReferenceFinder,
): Imported {
  const files = new Map<Import, ReadonlySet<string>>()
  for (const one of all) {
    const imported = finder.imported(path, one.specifier)
    if (imported.size > 0) files.set(one, imported)
  }
  const filesOf = (some: Iterable<Import>): ReadonlySet<string> =>
    new Set([...some].flatMap((one) => [...files.get(one)!]))
  return {
    imports: filesOf(files.keys()),
    judges: filesOf(judgesIn(text, all, new Set(files.keys()))),
    setsGlobals: SETS_GLOBALS.test(text),
  }
}

/** Only where that is certain: of Python, where functions without a value are seen. */
function onlyCompares(language: Language, text: string): boolean {
  return (
    language === 'python' &&
    /^[ \t]+assert\b.*(?:[=!<>]| (?:in|is)\b)|^[ \t]+raise AssertionError\b/m.test(text) &&
    !/^[ \t]*(?:async def|class)\b|\breturn[ \t]+(?!None\b)[^\s#]/m.test(text) &&
    !/\b(?:yield|lambda|print|open)\b/.test(text)
  )
}

const LISTS = /\b(?:readdir|glob|listdir|scandir|iterdir|os\.walk|Dir\[)/
const RUNS = new RegExp(
  '\\b(?:import|require|spawn|spawnSync|fork|exec\\w*)[ ]?\\(' +
    '|\\b(?:runpy|importlib|subprocess|execfile)\\b',
)
const EXPORTS = /^export\b|\bexports\b/m

/** Files that makefiles include. */
function includedBy(programs: ReadonlyMap<string, Program>): readonly string[] {
  const makefiles = [...programs.values()].filter(({ language }) => language === 'make')
  return makefiles.flatMap(({ refers }) =>
    [...refers.files].filter((path) => /\.(?:mk|make|inc)$/.test(path)),
  )
}
