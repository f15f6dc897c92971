/**
 * What only settings of tools, and modules that are loaded before tests, lead to: a preset in a
 * file of its own, plugins, hooks of setup modules.
 *
 * 1. Only imports count, from one module to the next. A module that somebody else refers to is
 *    code, and so are entries of the package and what its scripts start.
 * 2. Settings may lead into a folder of code, setup modules may not: they may load what is tested.
 *    For the same reason nothing counts that a setup module makes global, or that imports code.
 *
 * @module
 */
import { posix } from 'node:path'

import { hasRelevantPart } from '../relevant-part.js'
import {
  isConfiguration, isDelivered, isInCodeFolder, isMainName, isNeverOfChecks, stemOf,
} from './file-kinds.js'
import { groupBy } from './group-by.js'
import type { Facts, Program } from './observed-facts.js'

/**
 * The files that only settings and setup modules lead to. Yields often.
 *
 * @param tests programs on the side of the tests
 */
export function* ledToBySettings(
  facts: Facts,
  tests: ReadonlySet<string>,
): Generator<void, ReadonlySet<string>> {
  const refused = new Set<string>()
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = yield* reach(facts, tests, refused)
    const before = refused.size
    yield* refuseCode(facts, tests, found, refused)
    if (refused.size === before) return new Set(found.keys())
  }
  return new Set()
}

const MAX_ROUNDS = 50

/** Files with whether settings of tools led there, other than setup modules. */
type Reached = Map<string, boolean>

function isRoot({ path, setsGlobals }: Program, { setups, entries }: Facts): boolean {
  if (entries.has(path)) return false
  return isConfiguration(path) || (setups.has(path) && !setsGlobals)
}

function* reach(
  facts: Facts,
  tests: ReadonlySet<string>,
  refused: ReadonlySet<string>,
): Generator<void, Reached> {
  const { programs, observed } = facts
  const found: Reached = new Map()
  const take = (from: Program, bySettings: boolean): void => {
    for (const path of from.imports) {
      if (found.has(path) || refused.has(path) || tests.has(path)) continue
      if (!observed.known.has(path) && mayBeLedTo(path, bySettings, facts)) {
        found.set(path, bySettings)
      }
    }
  }
  for (const program of programs.values()) {
    yield
    if (isRoot(program, facts)) take(program, isConfiguration(program.path))
  }
  // Grows while it is walked.
  for (const [path, bySettings] of found) {
    const program = programs.get(path)
    if (program !== undefined) take(program, bySettings)
  }
  return found
}

function mayBeLedTo(path: string, bySettings: boolean, { entries, started }: Facts): boolean {
  if (entries.has(path) || started.has(path) || isNeverOfChecks(path)) return false
  if (hasRelevantPart(posix.basename(path)) || isDelivered(path)) return false
  const isIndex = stemOf(path) === 'index' && path.includes('/')
  return bySettings || (!isInCodeFolder(path) && (isIndex || !isMainName(path)))
}

/** Refuses what others refer to, and what setup modules load together with code. */
function* refuseCode(
  facts: Facts,
  tests: ReadonlySet<string>,
  found: Reached,
  refused: Set<string>,
): Generator<void, void> {
  const { programs, observed } = facts
  const byName = groupBy([...found.keys()].filter(isInCodeFolder), nameOf)
  for (const program of programs.values()) {
    yield
    const { path, refers, imports } = program
    const isSide = found.has(path)
    if (found.get(path) === false) {
      const isCode = (file: string): boolean =>
        programs.has(file) && !found.has(file) && !tests.has(file) && !observed.known.has(file)
      if ([...imports].some(isCode)) refused.add(path)
    }
    if (isSide || isRoot(program, facts)) continue
    for (const file of refers.files) if (found.has(file)) refused.add(file)
    for (const name of refers.unresolved) {
      for (const file of byName.get(name) ?? []) refused.add(file)
    }
  }
}

/** What a module is called by those who import it through an alias. */
function nameOf(path: string): string {
  const stem = stemOf(path)
  return stem === 'index' ? posix.basename(posix.dirname(path)) : stem
}
