/**
 * Files of which nothing shows whose they are: no code refers to them, and nothing tells for
 * certain that they belong to the check. A change to them is no offence, but sealed checks have
 * them as they were at the start.
 *
 * 1. Code are entries of the package, what its scripts start, what tests are named after, what lies
 *    in folders of code and beside the package's own files, everything beside such a file, and all
 *    that these refer to.
 * 2. A program is unclaimed only if tests use it that are about code as well: otherwise it is what
 *    such a test is about. Where there is no code, every file may be the work, and what a shell
 *    script names may be the answer that is asked for.
 *    Among code, only what asserts is, if tests use it that are about other code, too.
 * 3. Of data in folders of code, only what tests name is unclaimed: code may find the rest. So it
 *    is where no runner reports, with what scripts name: a linter reads what it is to judge.
 *
 * @module
 */
import { posix } from 'node:path'

import { hasRelevantPart } from '../relevant-part.js'
import {
  isDelivered, isForTests, isInCodeFolder, isMainName, isNeverOfChecks, isPage, isTestName,
  languageOf, stemOf,
} from './file-kinds.js'
import { Mentions } from './mentions.js'
import type { Facts, Program } from './observed-facts.js'

/** What was decided before. */
interface Sides {
  /** Programs on the side of the tests. */
  readonly tests: ReadonlySet<string>
  readonly belongs: ReadonlyMap<string, unknown>
  /** Is there a test about the file of this name, or one that expects it to throw? */
  readonly isSubject: (path: string) => boolean
  readonly isExpectedToThrow: (path: string) => boolean
}

/** The unclaimed files among those that a check read. Yields often. */
export function* unclaimedFiles(
  facts: Facts,
  { tests, belongs, isSubject, isExpectedToThrow }: Sides,
): Generator<void, readonly string[]> {
  const { files, programs, observed: { goal, script } } = facts
  if (goal.reporter === 'go' || goal.reporter === 'cargo') return []
  const work = yield* workOf(facts, tests, isSubject)
  if (work.size === 0) return []
  const [byCode, byTests, byScripts] = [new Mentions(), new Mentions(), new Mentions()]
  byScripts.add(facts.script)
  const looked = new Set([...script.matchAll(LOOKS_INTO)].flatMap(([text]) => text.split(/\s+/)))
  const subjects = new Set<string>()
  const folders = new Set([...work].map((path) => posix.basename(posix.dirname(path))))
  const isOfWork = ({ path, refers }: Program): boolean =>
    refers.itself || [...refers.files].some((file) => work.has(file)) ||
    [...refers.folders].some((folder) => folders.has(posix.basename(folder))) ||
    !(facts.reported.has(path) || isTestName(path) || facts.named.includes(path))
  for (const program of programs.values()) {
    yield
    const { path, refers, language } = program
    const isScript = language === 'shell' || language === 'make'
    if (!tests.has(path)) byCode.add(refers)
    else if (!isScript && isOfWork(program)) byTests.add(refers)
    else if (goal.reporter === null) byScripts.add(refers)
    else for (const file of refers.files) subjects.add(file)
  }
  const found: string[] = []
  for (const path of assertingAmong(work, facts, tests, { isSubject, isExpectedToThrow })) {
    if (!belongs.has(path) && !byCode.names(path)) found.push(path)
  }
  for (const path of files) {
    yield
    if (belongs.has(path) || work.has(path) || subjects.has(path)) continue
    const isNamed = goal.reporter === null && byScripts.names(path) && !looked.has(path)
    if (isNamed && languageOf(path) === 'data' && IN_HIDDEN_FOLDER.test(path)) found.push(path)
    if (isOther(path)) continue
    const program = programs.get(path)
    if (program !== undefined && !DATA.test(path)) {
      if (mayBeUnclaimed(program) && byTests.has(path)) found.push(path)
    } else if (isForTests(path) && byTests.hasStem(path)) {
      // Code is told the name by those who use it.
      if (!byCode.names(path) && !byCode.hasStem(path)) found.push(path)
    } else if ((languageOf(path) === 'data' || DATA.test(path)) && !byCode.has(path)) {
      // Code may find what is near it without naming it.
      if (isInCodeFolder(path)) {
        if (byTests.names(path)) found.push(path)
      } else if (goal.reporter !== null || isNamed || byTests.has(path)) found.push(path)
    }
  }
  return found
}

/** Code that asserts, and that tests use beside other code. */
function assertingAmong(
  work: ReadonlySet<string>,
  { entries, started, programs }: Facts,
  tests: ReadonlySet<string>,
  { isSubject, isExpectedToThrow }: Pick<Sides, 'isSubject' | 'isExpectedToThrow'>,
): ReadonlySet<string> {
  const found = new Set<string>()
  for (const path of work) {
    const program = programs.get(path)
    if (program === undefined || !(program.usesTestLibrary || program.onlyCompares)) continue
    const isKnown = entries.has(path) || started.has(path) || isMainName(path)
    if (isKnown || isSubject(path) || isExpectedToThrow(path)) continue
    if (mayBeUnclaimed(program)) found.add(path)
  }
  const used = new Set<string>()
  for (const path of found.size === 0 ? [] : tests) {
    const { files } = programs.get(path)!.refers
    const isOther = (file: string): boolean =>
      work.has(file) && !found.has(file) && stemOf(file) !== '__init__'
    const isBeside = [...files].some(isOther)
    for (const file of files) {
      if (isBeside) used.add(file)
      // Otherwise it is what the test is about.
      else found.delete(file)
    }
  }
  return new Set([...found].filter((path) => used.has(path)))
}

/** Is this something of which other rules decide: tests, prose, manifests? */
function isOther(path: string): boolean {
  if (isTestName(path) || isNeverOfChecks(path) || isDelivered(path)) return true
  return isPage(path) || hasRelevantPart(posix.basename(path))
}

/** What is searched for something may be what is asked for. */
const LOOKS_INTO = /\b[ef]?grep[ ][^\n|;&)]{1,500}/g

/** Such as `.github`, which holds steps of builds and checks. */
const IN_HIDDEN_FOLDER = /(?:^|\/)\.[\w-]+\//

/** Programs that others read, rather than run. */
const DATA = /\.(?:sql|graphql|proto|jq|awk|sed)$/

/** What programs in other languages refer to is not known well enough. */
function mayBeUnclaimed({ language, testsItself }: Program): boolean {
  return (language === 'javascript' || language === 'python') && !testsItself
}

/** All that is known to be code. */
function* workOf(
  { entries, started, programs, observed }: Facts,
  tests: ReadonlySet<string>,
  isSubject: (path: string) => boolean,
): Generator<void, ReadonlySet<string>> {
  const work = new Set<string>()
  const folders = new Set<string>()
  const read = new Set(observed.read)
  const isBeside = (path: string, name: string): boolean =>
    read.has(`${posix.dirname(path)}/${name}`)
  const isMain = (path: string): boolean =>
    isMainName(path) && (stemOf(path) !== 'index' || isBeside(path, 'package.json'))
  const isWork = (path: string): boolean =>
    entries.has(path) || started.has(path) || isInCodeFolder(path) || isMain(path) ||
    isSubject(path) || !path.includes('/') || isBeside(path, '__init__.py')
  const take = (path: string): void => {
    if (tests.has(path)) return
    work.add(path)
    folders.add(posix.dirname(path))
  }
  for (const path of programs.keys()) {
    yield
    if (isWork(path)) take(path)
  }
  for (const path of programs.keys()) {
    yield
    if (folders.has(posix.dirname(path)) && !tests.has(path)) work.add(path)
  }
  const mentioned = new Mentions()
  const unresolved = new Set<string>()
  // Grows while it is walked.
  for (const path of work) {
    yield
    const refers = programs.get(path)?.refers
    if (refers === undefined) continue
    mentioned.add(refers)
    for (const name of refers.unresolved) unresolved.add(name)
    for (const file of refers.files) if (!tests.has(file)) work.add(file)
  }
  for (const path of programs.keys()) {
    yield
    const isNamed = mentioned.has(path) || unresolved.has(stemOf(path))
    if (isNamed && !tests.has(path)) work.add(path)
  }
  return work
}
