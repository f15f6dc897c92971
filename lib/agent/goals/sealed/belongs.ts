/**
 * What belongs to a check, told from what it was seen to read. Tests, what only tests read, and
 * configuration belong to it; the code under test never does.
 *
 * 1. A program belongs only when there is evidence: the runner reported it, the command names it,
 *    its name or what it imports shows that it helps tests. Being read by tests alone is none,
 *    since that is true of code under test as well. Whatever code under test refers to is code.
 * 2. Data belongs when a test refers to it and no code does; what a shell check compares belongs by
 *    its name only, since it may be the answer that is asked for.
 *
 * @module
 */
import { posix } from 'node:path'

import { inSlices } from '../../../internal/time.js'
import { hasRelevantPart } from '../relevant-part.js'
import {
  hasHelperWord, isCheckingName, isCodeFolder, isConfiguration, isDelivered, isExample,
  isFixtureName, isHelperName, isInCodeFolder, isInputName, isInTestTree, isMainName,
  isMockFolder, isNeverOfChecks, isPage, isSnapshot, isTestName, isToolConfiguration, languageOf,
  mayHoldTests, stemOf, subjectOf,
} from './file-kinds.js'
import { groupBy } from './group-by.js'
import { ledToBySettings } from './led-to.js'
import { Mentions } from './mentions.js'
import { gatherFacts, type Facts, type Observed, type Program } from './observed-facts.js'
import type { References } from './references.js'
import { foldersAbove } from './shadows.js'
import { unclaimedFiles } from './unclaimed.js'

export type { Observed } from './observed-facts.js'

/** Why a file belongs to a check. */
export type BelongsReason =
  | 'named by the command'
  | 'test'
  | 'in a folder of tests'
  | 'configuration'
  | 'helper of tests'
  | 'read by tests only'

/** What was decided of the files that a check read. */
export interface Belonging {
  /** What belongs to the check beyond `known`, with the reason for each. */
  readonly belongs: ReadonlyMap<string, BelongsReason>
  /** What may belong to it, see {@link unclaimedFiles}. */
  readonly unclaimed: readonly string[]
}

/**
 * Decides what belongs to a check.
 *
 * @throws the signal's reason when it is aborted.
 */
export async function whatBelongs(
  observed: Observed,
  signal?: AbortSignal,
): Promise<Belonging> {
  const facts = await gatherFacts(observed, signal)
  return await inSlices(new Decision(facts).decide())
}

/** Decides from the facts; steps over sets, each linear in what was found. */
class Decision {
  readonly #facts: Facts
  readonly #belongs: Map<string, BelongsReason> = new Map()
  /** Programs on the side of the tests; all others are code. */
  readonly #tests: Set<string> = new Set()
  /** Programs that may help tests, with the reason if they do. */
  readonly #candidates: Map<string, BelongsReason> = new Map()
  /** What tests are about, by name. */
  #subjects: ReadonlySet<string> | null = null
  #reportedFolders: ReadonlySet<string> | null = null
  /** What only settings and setup modules lead to. */
  #ledTo: ReadonlySet<string> = new Set()
  /** What tests use in place of assertions. */
  #judges: ReadonlySet<string> = new Set()
  /** What is used by tests that expect something to throw. */
  readonly #expectedToThrow: Set<string> = new Set()
  /** Names of folders in which a program of the check runs what it finds, and what it starts. */
  readonly #listedFolders: Set<string> = new Set()
  readonly #started: Set<string> = new Set()

  constructor(facts: Facts) {
    this.#facts = facts
  }

  /** Yields often: there may be many files. */
  *decide(): Generator<void, Belonging> {
    yield* this.#startWithTests()
    const folders = yield* this.#foldersOfTests()
    this.#ledTo = yield* ledToBySettings(this.#facts, this.#tests)
    yield* this.#judging()
    for (const path of this.#facts.files) {
      yield
      const reason = this.#mayHelp(path, folders)
      if (reason !== null) this.#candidates.set(path, reason)
    }
    for (const path of yield* this.#helpers()) {
      this.#startWith(path, this.#candidates.get(path)!)
    }
    yield* this.#addData(folders)
    this.#addParts()
    const isSubject = (path: string): boolean => this.#isSubject(path)
    const isExpectedToThrow = (path: string): boolean => this.#expectedToThrow.has(path)
    const sides = { tests: this.#tests, belongs: this.#belongs, isSubject, isExpectedToThrow }
    return { belongs: this.#belongs, unclaimed: yield* unclaimedFiles(this.#facts, sides) }
  }

  /** What is known, reported, or run by the command. */
  *#startWithTests(): Generator<void, void> {
    const { beside, entries, observed, programs, reported, named, started } = this.#facts
    for (const path of programs.keys()) if (observed.known.has(path)) this.#tests.add(path)
    const files = new Set(this.#facts.files)
    const usedByCode = new Set<string>()
    for (const { path, refers } of programs.values()) {
      yield
      if (observed.known.has(path) || reported.has(path) || isTestName(path)) continue
      if (this.#standsWithTests(path)) continue
      for (const file of refers.files) usedByCode.add(file)
    }
    const usedByTests = new Set<string>()
    for (const path of reported) {
      yield
      for (const file of programs.get(path)?.refers.files ?? []) usedByTests.add(file)
      if (!files.has(path) || isNeverOfChecks(path)) continue
      const program = programs.get(path)
      const isCode = program?.testsItself === true || usedByCode.has(path)
      if (!isCode || isTestName(path)) this.#startWith(path, 'test')
    }
    for (const path of beside) {
      const isUsed = usedByCode.has(path) || usedByTests.has(path)
      const isWork = entries.has(path) || started.has(path)
      if (files.has(path) && !isUsed && !isWork) this.#startWith(path, 'named by the command')
    }
    for (const path of named) {
      const program = programs.get(path)
      const isCheck = program?.asserts === true || isCheckingName(path) || this.#runsCases(program)
      if (files.has(path) && isCheck && !usedByCode.has(path) && !entries.has(path)) {
        this.#startWith(path, 'named by the command')
      }
    }
    for (const path of files) {
      yield
      const isTest = isTestName(path) && programs.has(path) && !isNeverOfChecks(path)
      if (isTest && !this.#belongs.has(path)) this.#startWith(path, 'test')
    }
  }

  /** Does a program start others that compare something, and are nothing else? */
  #runsCases(program: Program | undefined): boolean {
    if (program?.runs !== true) return false
    const { programs } = this.#facts
    const isCase = (path: string): boolean => programs.get(path)?.isCase === true
    return [...program.refers.files].some((path) => isCase(path) && !isInCodeFolder(path))
  }

  #startWith(path: string, reason: BelongsReason): void {
    this.#belongs.set(path, reason)
    if (this.#facts.programs.has(path)) this.#tests.add(path)
  }

  /** True for a program beside reported tests, which may be one of their helpers. */
  #standsWithTests(path: string): boolean {
    const folder = posix.dirname(path)
    if (folder === '.' || isCodeFolder(folder)) return false
    this.#reportedFolders ??= new Set([...this.#facts.reported].map((one) => posix.dirname(one)))
    return this.#reportedFolders.has(folder)
  }

  /**
   * Folders that hold tests and nothing else: their name or the names of their tests say so, their
   * tests are about code elsewhere, and no code elsewhere refers into them.
   */
  *#foldersOfTests(): Generator<void, ReadonlySet<string>> {
    const { reported, programs, entries } = this.#facts
    const tests = groupBy(
      [...reported].filter((path) => this.#tests.has(path)),
      (path) => posix.dirname(path),
    )
    const folders = new Set<string>()
    for (const [folder, paths] of tests) {
      yield
      if (folder === '.' || isCodeFolder(folder)) continue
      const isOdd = paths.some((path) => !isTestName(path)) || mayHoldTests(folder)
      const isAboutOthers = paths.some((path) => this.#refersOutOf(path, folder))
      if (isOdd && isAboutOthers && !this.#holdsSubjects(folder, paths)) folders.add(folder)
    }
    for (const { path, refers } of programs.values()) {
      yield
      if (this.#tests.has(path) || isConfiguration(path)) continue
      for (const file of refers.files) {
        const inside = folderAmong(file, folders)
        if (inside !== null && folderAmong(path, folders) === null) folders.delete(inside)
      }
    }
    for (const entry of entries) {
      const inside = folderAmong(entry, folders)
      if (inside !== null) folders.delete(inside)
    }
    return folders
  }

  /** Is a test about code outside of its folder, alone or by what it imports there? */
  #refersOutOf(path: string, folder: string): boolean {
    const refers = this.#facts.programs.get(path)?.refers
    if (refers === undefined) return false
    const leadsOut = ({ itself, files }: References): boolean =>
      itself || [...files].some((file) => this.#isOtherCode(file, folder))
    if (leadsOut(refers) || !mayHoldTests(folder)) return leadsOut(refers)
    const beside = [...refers.files].filter((file) => isWithin(file, folder))
    return beside.some((file) => leadsOut(this.#facts.programs.get(file)?.refers ?? refers))
  }

  #isOtherCode(file: string, folder: string): boolean {
    const { programs, observed } = this.#facts
    if (isWithin(file, folder) || this.#tests.has(file)) return false
    return programs.has(file) || (languageOf(file) !== 'data' && !observed.known.has(file))
  }

  /** Is there a file of the name of what one of these tests is about? */
  #holdsSubjects(folder: string, tests: readonly string[]): boolean {
    const subjects = new Set(tests.filter(isTestName).map(subjectOf))
    return [...this.#facts.programs.keys()].some(
      (path) =>
        posix.dirname(path) === folder && !this.#tests.has(path) && subjects.has(stemOf(path)),
    )
  }

  /** Why a file may belong, if no code refers to it; null for code. */
  #mayHelp(path: string, folders: ReadonlySet<string>): BelongsReason | null {
    const { programs, configured, entries, setups } = this.#facts
    if (this.#belongs.has(path)) return null
    // Makefiles may include what lies in a folder for output.
    if (configured.has(path) && languageOf(path) === 'make') return 'configuration'
    if (isNeverOfChecks(path)) return null
    if (this.#ledTo.has(path)) return 'configuration'
    if (this.#judges.has(path)) return 'helper of tests'
    if (entries.has(path) || hasRelevantPart(posix.basename(path))) return null
    const program = programs.get(path)
    if (isConfiguration(path)) return 'configuration'
    if (folderAmong(path, folders) !== null && program !== undefined) return 'in a folder of tests'
    if (isInTestTree(path) && program !== undefined) return 'in a folder of tests'
    const isOutside = program === undefined || !isInCodeFolder(path) || isHelperName(path)
    if (setups.has(path) && isOutside) return 'configuration'
    if (program === undefined) return null
    if (program.isCase && this.#isRun(program)) return 'in a folder of tests'
    if (isHelperName(path)) return 'helper of tests'
    if (this.#isSubject(path)) return null
    if (program.language === 'shell' || program.language === 'make') {
      return isCheckingName(path) || hasHelperWord(path) ? 'helper of tests' : null
    }
    if (isInCodeFolder(path)) return null
    if (hasHelperWord(path)) return 'helper of tests'
    if (program.onlyCompares && !this.#expectedToThrow.has(path)) return 'helper of tests'
    if (isCheckingName(path) && this.#facts.observed.goal.reporter === null && !isMainName(path)) {
      return 'helper of tests'
    }
    return program.usesTestLibrary && !isExample(path) ? 'read by tests only' : null
  }

  /** Notes what tests do with the modules that they use, and with the folders that they list. */
  *#judging(): Generator<void, void> {
    const { programs, entries, exported } = this.#facts
    const found = new Set<string>()
    const others = new Set<string>()
    for (const path of this.#tests) {
      yield
      const { refers, judges, expectsErrors, runs, runsListed } = programs.get(path)!
      for (const file of refers.files) {
        ;(judges.has(file) ? found : others).add(file)
        if (expectsErrors) this.#expectedToThrow.add(file)
        if (runs) this.#started.add(file)
      }
      if (runsListed) for (const name of refers.folders) this.#listedFolders.add(name)
    }
    const isJudge = (path: string): boolean => {
      const program = programs.get(path)
      if (program === undefined || this.#tests.has(path) || others.has(path)) return false
      if (!program.asserts && !program.usesTestLibrary) return false
      return (!entries.has(path) || exported.has(path)) && !this.#isSubject(path)
    }
    this.#judges = new Set([...found].filter(isJudge))
  }

  /** Does a program of the check run this, or what it finds here, to check code elsewhere? */
  #isRun({ path, refers }: Program): boolean {
    const folder = posix.dirname(path)
    if (folder === '.' || isInCodeFolder(path)) return false
    if (![...refers.files].some((file) => this.#isOtherCode(file, folder))) return false
    if (this.#started.has(path)) return true
    return [folder, posix.basename(folder)].some((name) => this.#listedFolders.has(name))
  }

  /** Is there a test about the file of this name? */
  #isSubject(path: string): boolean {
    this.#subjects ??= new Set([...this.#tests].filter(isTestName).map(subjectOf))
    const stem = stemOf(path)
    const isIndex = stem === 'index' || stem === '__init__'
    return this.#subjects.has(isIndex ? posix.basename(posix.dirname(path)) : stem)
  }

  /** The candidates that tests refer to and code does not. */
  *#helpers(): Generator<void, ReadonlySet<string>> {
    const { programs } = this.#facts
    const refused = new Set<string>()
    // Each round refuses what the last one made code; a chain without end is refused as a whole.
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const accepted = yield* this.#reached(refused)
      const before = refused.size
      for (const { path, refers } of programs.values()) {
        yield
        if (this.#tests.has(path) || accepted.has(path)) continue
        for (const file of refers.files) {
          if (accepted.has(file) && !isToolConfiguration(file)) refused.add(file)
        }
      }
      if (refused.size === before) return accepted
    }
    return new Set()
  }

  /** Candidates that tests, and helpers of tests, lead to. */
  *#reached(refused: ReadonlySet<string>): Generator<void, ReadonlySet<string>> {
    const { programs, script } = this.#facts
    const reached = new Set<string>()
    for (const [path, reason] of this.#candidates) {
      const byItself = reason === 'configuration' || reason === 'in a folder of tests'
      if ((byItself || isMockFolder(path)) && !refused.has(path)) reached.add(path)
    }
    const take = (from: Program | null, refers: References): void => {
      for (const file of refers.files) {
        const mayJoin = this.#candidates.has(file) && !refused.has(file) && !reached.has(file)
        if (mayJoin && this.#helps(file, from)) reached.add(file)
      }
    }
    take(null, script)
    for (const path of this.#tests) {
      yield
      take(programs.get(path)!, programs.get(path)!.refers)
    }
    // Grows while it is walked.
    for (const path of reached) {
      yield
      const program = programs.get(path)
      if (program !== undefined) take(program, program.refers)
    }
    return reached
  }

  /** A helper by a mere word must be used beside code under test: it may be the subject itself. */
  #helps(file: string, from: Program | null): boolean {
    const program = this.#facts.programs.get(file)
    if (program === undefined || isHelperName(file) || from === null) return true
    if (this.#judges.has(file)) return true
    if (program.language === 'shell' || from.language === 'shell') {
      return isCheckingName(file) || from.language === program.language
    }
    if (program.usesTestLibrary || from.refers.itself) return true
    const used = [...from.refers.files, ...program.refers.files]
    return used.some((path) => path !== file && this.#isPlainCode(path))
  }

  #isPlainCode(path: string): boolean {
    return languageOf(path) !== 'data' && !this.#tests.has(path) && !this.#candidates.has(path)
  }

  *#addData(folders: ReadonlySet<string>): Generator<void, void> {
    const { files, programs } = this.#facts
    const data = files.filter(
      (path) => !programs.has(path) && !this.#belongs.has(path) && !isNeverOfChecks(path),
    )
    if (data.length === 0) return
    const code = new Mentions()
    const tests = new Mentions()
    const shell = new Mentions()
    const exercising = this.#exercising()
    for (const [path, { refers, language }] of programs) {
      yield
      if (!this.#tests.has(path)) code.add(refers)
      else if (language === 'shell' || language === 'make') shell.add(refers)
      else if (exercising.has(path)) tests.add(refers)
      else shell.add(refers)
    }
    if (this.#facts.isSimple) tests.add(this.#facts.script)
    else shell.add(this.#facts.script)
    for (const path of data) {
      yield
      const reason = this.#dataReason(path, folders, code, tests, shell)
      if (reason !== null) this.#belongs.set(path, reason)
    }
  }

  #dataReason(
    path: string,
    folders: ReadonlySet<string>,
    code: Mentions,
    tests: Mentions,
    shell: Mentions,
  ): BelongsReason | null {
    if (hasRelevantPart(posix.basename(path)) || languageOf(path) !== 'data') return null
    if (code.has(path)) return null
    const isFixture = isFixtureName(path)
    if (folderAmong(path, folders) !== null && (isFixture || !isDelivered(path))) {
      return 'in a folder of tests'
    }
    if (isSnapshot(path) || (isFixture && tests.has(path))) return 'read by tests only'
    if ((isFixture || isInputName(path)) && shell.has(path)) return 'read by tests only'
    if (isDelivered(path) || !tests.has(path)) return null
    if ((isPage(path) || isInCodeFolder(path)) && !isInputName(path)) return null
    return 'read by tests only'
  }

  /** What leads to helpers in package.json, and the samples that tests take from prose. */
  #addParts(): void {
    const { exported, programs, observed, samples } = this.#facts
    const manifests = new Set(observed.read.filter((path) => path.endsWith('/package.json')))
    for (const path of [...this.#belongs.keys()]) {
      if (exported.has(path)) this.#belongs.set('package.json#exports', 'configuration')
      if (this.#belongs.get(path) !== 'helper of tests') continue
      const manifest = foldersAbove(path).map((one) => `${one}/package.json`)
        .find((one) => manifests.has(one))
      if (manifest !== undefined) this.#belongs.set(`${manifest}#entry`, 'configuration')
    }
    const tests = new Mentions()
    for (const path of this.#exercising()) {
      const { refers, takesApart } = programs.get(path)!
      if (takesApart) tests.add(refers)
    }
    if (/\bdoctest\b/.test(observed.script)) tests.add(this.#facts.script)
    for (const [path, names] of samples) {
      const isTested = tests.has(path) || this.#facts.reported.has(path)
      if (this.#belongs.has(path) || !isTested) continue
      for (const name of names) this.#belongs.set(`${path}#${name}`, 'read by tests only')
    }
  }

  /** Programs of tests that lead to code under test, alone or by what uses them. */
  #exercising(): ReadonlySet<string> {
    const { programs } = this.#facts
    const found = new Set<string>()
    const usedBy = new Map<string, string[]>()
    for (const path of this.#tests) {
      const { refers, language } = programs.get(path)!
      const isCode = (file: string): boolean =>
        !this.#tests.has(file) && (programs.has(file) || languageOf(file) !== 'data')
      if (refers.itself || language === 'other' || [...refers.files].some(isCode)) found.add(path)
      for (const file of refers.files) {
        if (!this.#tests.has(file)) continue
        const users = usedBy.get(file)
        if (users === undefined) usedBy.set(file, [path])
        else users.push(path)
      }
    }
    for (const path of found) for (const user of usedBy.get(path) ?? []) found.add(user)
    for (const path of found) {
      for (const file of programs.get(path)!.refers.files) {
        if (this.#tests.has(file)) found.add(file)
      }
    }
    return found
  }
}

const MAX_ROUNDS = 50

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`)
}

/** The one of these folders in which a path lies; null for none. */
function folderAmong(path: string, folders: ReadonlySet<string>): string | null {
  for (let at = path.lastIndexOf('/'); at !== -1; at = path.lastIndexOf('/', at - 1)) {
    if (folders.has(path.slice(0, at))) return path.slice(0, at)
    if (at === 0) break
  }
  return null
}
