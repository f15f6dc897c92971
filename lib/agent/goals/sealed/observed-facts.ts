/**
 * What there is to know of a check before it is decided what belongs to it: its programs with what
 * they refer to, what its command runs, what settings name. Texts come from the workspace: they are
 * bounded, read in slices, and never run.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'

import { LongWork } from '../../../internal/next-turn.js'
import type { GoalSpec } from '../../goal.js'
import { pythonPlugins, settingValues } from '../runner-files.js'
import { shellCommands } from '../shell-commands.js'
import {
  isCheckingName, isConfiguration, isInCodeFolder, isMainName, isNeverOfChecks, isTestName,
  languageOf, shebang, type Language,
} from './file-kinds.js'
import { readPackage, type PackageFacts } from './package-facts.js'
import { TextReader } from './read-texts.js'
import { ReferenceFinder, type References } from './references.js'
import { definesTests, testLibraryIn } from './test-texts.js'

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
  /** Imports a library for tests. */
  readonly usesTestLibrary: boolean
  /** Code with tests in itself: documentation that is run, or tests beside the code. */
  readonly testsItself: boolean
  /** Compares something and fails. */
  readonly asserts: boolean
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
  readonly reported: ReadonlySet<string>
  readonly programs: ReadonlyMap<string, Program>
  /** What the command and its scripts refer to. */
  readonly script: References
  /** True when the command starts a runner, or a program that checks by itself. */
  readonly isSimple: boolean
  /** Programs that the command runs. */
  readonly named: readonly string[]
  /** Files that the settings of tools name. */
  readonly configured: ReadonlySet<string>
  readonly entries: ReadonlySet<string>
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
  const reported = await existing(root, new Set(observed.testFiles), new Set(observed.read))
  const all = new Set([...observed.read, ...reported].filter(isPlainPath))
  const about = readPackage(await texts.read('package.json'), [...all, ...changed])
  const finder = new ReferenceFinder(
    [...all, ...changed].filter((path) => !path.split('/').includes('node_modules')),
    about.name,
    about.main,
    new Set(observed.listed.map((folder) => posix.basename(folder))),
  )
  const programs = new Map<string, Program>()
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
      const named = languageOf(path)
      const language = named === 'data' ? (shebang(text) ?? 'data') : named
      if (isConfiguration(path)) await note(path, [...settingValues(text)].join('\n'))
      if (language === 'data') continue
      const refers = await finder.find(path, text, language)
      programs.set(path, programOf(path, language, text, refers, about))
    }
  }
  for (const path of await pluginsOf(observed, texts, finder, programs)) configured.add(path)
  await note('package.json', [...settingValues(about.tools), ...about.paths].join('\n'))
  for (const path of includedBy(programs)) configured.add(path)
  return {
    observed,
    files: [...all].filter((path) => !changed.has(path) && !known.has(path)),
    reported,
    programs,
    script: await finder.find('', script, 'shell'),
    isSimple: goal.reporter !== null || !COMPARES.test(script),
    named: goal.reporter === null ? programsRun(script, all) : [],
    configured,
    entries: about.entries,
  }
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

/** Relative and without steps up; control characters would garble what people read. */
function isPlainPath(path: string): boolean {
  return path !== '' && !path.startsWith('/') && !path.split('/').includes('..')
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
    else if ((await lstat(join(root, name)).catch(() => null))?.isFile() === true) found.add(name)
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

function programOf(
  path: string,
  language: Language,
  text: string,
  refers: References,
  about: PackageFacts,
): Program {
  const library = testLibraryIn(text)
  const isOurs = library !== null && about.name !== null && library.includes(about.name)
  const testsItself =
    language === 'python'
      ? text.includes('>>> ') && !definesTests(text)
      : text.includes('import.meta.vitest')
  const usesTestLibrary = library !== null && !isOurs
  return {
    path, language, refers, usesTestLibrary, testsItself,
    asserts: ASSERTS.test(text),
    onlyCompares: onlyCompares(language, text),
    expectsErrors: /\b(?:raises|assertRaises\w*|throws|rejects|toThrow\w*)\b/.test(text),
    runsListed: LISTS.test(text) && RUNS.test(text),
    isCase:
      language === 'python'
        ? /^assert\b/m.test(text)
        : /\bassert/.test(text) && !EXPORTS.test(text),
  }
}

/** Only where that is certain: of Python, where functions without a value are seen. */
function onlyCompares(language: Language, text: string): boolean {
  return (
    language === 'python' &&
    /^[ \t]+assert\b[^\n]*[=!<>]=?|^[ \t]+assert\b[^\n]* (?:in|is)\b/m.test(text) &&
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

const INTERPRETERS =
  /^(?:node|tsx|ts-node|deno|bun|python[\d.]*|ruby|perl|php|sh|bash|dash|zsh)$/
/** What makes a program's output, not the program, what is checked. */
const COMPARES = /\b(?:diff|cmp|grep|comm|test|jq)\b|\[|<|\|(?!\|)/

/** Programs that the commands of a check run, where these programs are the check. */
function programsRun(script: string, files: ReadonlySet<string>): readonly string[] {
  const found: string[] = []
  const compares = COMPARES.test(script)
  for (const { words, runs } of shellCommands(script)) {
    if (!runs) continue
    const texts = words.map(({ text }) => text)
    const at = texts.findIndex((text) => INTERPRETERS.test(posix.basename(text)))
    const argument = texts.slice(at + 1).find((text) => !text.startsWith('-')) ?? ''
    for (const word of at === -1 ? texts.slice(0, 1) : [argument]) {
      const path = posix.normalize(word)
      if (!files.has(path)) continue
      if (isCheckingName(path) || (!compares && !isMainName(path) && !isInCodeFolder(path))) {
        found.push(path)
      }
    }
  }
  return found
}
