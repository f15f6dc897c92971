/** Draws a half of the list anew: from a seed, with every bug shown to be one by the tests. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lineOf, mutated, type Bug, type Mutation } from './bug.js'
import { fetched } from './cache.js'
import { own, strykers } from './mutations.js'
import type { RealPackage } from './packages.js'
import { seeded, type Random } from './random.js'
import { passes, runSuite, suiteCommand, type SuiteResult } from './suite.js'
import { copyPackage, sourcesOf, testsOf } from './workspace.js'

/** Mutations of a package that are tried until one is a bug. */
const TRIES = 24
/** Tokens that a bug changes, at most: a repair adds no more than a line of its own. */
const MOST_TOKENS = 8
/** A bug breaks less: what fails entirely tells nothing about the place. */
const MOST_FAILING = 0.6
/** Of the test files that pass in spite of a bug. */
const HELD_OUT = 0.3
const MOST_PER_PACKAGE = 3

export interface DrawOptions {
  readonly packages: readonly RealPackage[]
  readonly cache: string
  readonly seed: string
  readonly wanted: number
  readonly jobs: number
  /** Bugs of the other half, which are not drawn again. */
  readonly taken: readonly Bug[]
  readonly told: (line: string) => void
  /** Called after each bug with those so far: drawing takes long. */
  readonly found: (bugs: readonly Bug[]) => Promise<void>
}

type Placed = Mutation & { readonly file: string }

/** One bug of each package in turn, at most three, until there are enough. */
export async function draw(options: DrawOptions): Promise<Bug[]> {
  const found: Bug[] = []
  const order = options.packages.map(({ name }) => name)
  const inOrder = (): Bug[] =>
    found.toSorted((a, b) => order.indexOf(a.package) - order.indexOf(b.package))
  const taken = new Set(options.taken.map(keyOf))
  for (let round = 0; round < MOST_PER_PACKAGE && found.length < options.wanted; round++) {
    const queue = options.packages.map((one, index) => ({ one, index }))
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const random = seeded(`${options.seed} ${round} ${next.one.name}`)
        const isOwn = next.one.language === 'python' || (next.index + round) % 2 > 0
        const by = isOwn ? 'own' : 'stryker'
        const bug = await drawOne(next.one, by, options.cache, random, taken).catch((error) => {
          options.told(`${next!.one.name}: ${String(error).slice(0, 2000)}`)
          return null
        })
        if (bug === null) {
          options.told(`${next.one.name}: no bug by ${by}`)
          continue
        }
        taken.add(keyOf(bug))
        found.push(bug)
        await options.found(inOrder())
        options.told(`${bug.package} ${bug.file}:${bug.line}, ${by}: ${bug.operator}`)
      }
    }
    await Promise.all(Array.from({ length: options.jobs }, work))
  }
  return inOrder()
}

const keyOf = (bug: Pick<Bug, 'package' | 'file' | 'offset' | 'replacement'>): string =>
  JSON.stringify([bug.package, bug.file, bug.offset, bug.replacement])

async function drawOne(
  one: RealPackage, by: Bug['by'], cache: string, random: Random, taken: ReadonlySet<string>,
): Promise<Bug | null> {
  const folder = await mkdtemp(join(tmpdir(), 'repair-draw-'))
  const copy = join(folder, 'package')
  try {
    await copyPackage(await fetched(one, cache), copy)
    const { runner } = one
    const started = await runSuite(runner, suiteCommand(one), copy)
    if (!passes(started)) throw new Error(`${one.name} fails as it is:\n${started.output}`)
    const limitMs = 5_000 + started.seconds * 2_000
    for (const mutation of ordered(await mutations(one, by, copy), random).slice(0, TRIES)) {
      const path = join(copy, mutation.file)
      const text = await readFile(path, 'utf8')
      const { file, operator, offset, original, replacement } = mutation
      const bug = {
        package: one.name, version: one.version, by, file, line: lineOf(text, offset),
        operator, offset, original, replacement,
      }
      if (taken.has(keyOf(bug))) continue
      await writeFile(path, mutated(text, mutation))
      const result = await runSuite(runner, suiteCommand(one), copy, limitMs)
      const heldOut = isBug(result) ? await holdOut(one, copy, random, limitMs) : []
      await writeFile(path, text)
      if (isBug(result)) return { ...bug, heldOut: await checked(one, copy, heldOut) }
    }
    return null
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const isBug = ({ timedOut, exitCode, passed, failed }: SuiteResult): boolean =>
  !timedOut && exitCode !== 0 && failed > 0 && passed > 0 &&
  failed / (failed + passed) <= MOST_FAILING

async function mutations(one: RealPackage, by: Bug['by'], copy: string): Promise<Placed[]> {
  const lists = await Promise.all(
    (await sourcesOf(one, copy)).map(async (file) => {
      const text = await readFile(join(copy, file), 'utf8')
      const found = by === 'own' ? own(one.language, file, text) : await strykers(file, text)
      return found.filter(isSmall).map((mutation) => ({ ...mutation, file }))
    }),
  )
  return lists.flat()
}

/** What differs between two texts, without what they begin and end with, in tokens or nearly so. */
function isSmall({ original, replacement }: Mutation): boolean {
  const [a, b] = [original, replacement].map((text) => text.match(TOKENS) ?? [])
  let head = 0
  while (head < Math.min(a!.length, b!.length) && a![head] === b![head]) head += 1
  let tail = 0
  const most = Math.min(a!.length, b!.length) - head
  while (tail < most && a!.at(-1 - tail) === b!.at(-1 - tail)) tail += 1
  return Math.max(a!.length, b!.length) - head - tail <= MOST_TOKENS
}

const TOKENS = /'[^'\n]*'|"[^"\n]*"|[\w$]+|[=!<>&|?+*/-]+|[^\s\w$]/g

/** Operators in turn, so that one with many places is not drawn more often. */
function ordered(all: readonly Placed[], random: Random): Placed[] {
  const byOperator = new Map<string, Placed[]>()
  for (const each of random.shuffled(all)) {
    const known = byOperator.get(each.operator)
    if (known === undefined) byOperator.set(each.operator, [each])
    else known.push(each)
  }
  const groups = random.shuffled([...byOperator.values()])
  const most = Math.max(0, ...groups.map(({ length }) => length))
  return Array.from({ length: most }, (_, turn) =>
    groups.flatMap((group) => group[turn] ?? []),
  ).flat()
}

/** Some of the test files that pass with the bug in place. */
async function holdOut(
  one: RealPackage, copy: string, random: Random, limitMs: number,
): Promise<string[]> {
  const tests = await testsOf(one, copy)
  if (tests.length < 2) return []
  const passing: string[] = []
  const wanted = (): number => Math.floor(tests.length * HELD_OUT)
  for (const path of random.shuffled(tests)) {
    if (passing.length >= Math.max(wanted(), 1)) break
    const result = await runSuite(one.runner, `${one.command} ${path}`, copy, limitMs)
    if (passes(result)) passing.push(path)
  }
  return passing.sort()
}

/** None when the tests need the files that would be held out. */
async function checked(
  one: RealPackage, copy: string, heldOut: readonly string[],
): Promise<readonly string[]> {
  for (const path of heldOut) await rm(join(copy, path))
  return passes(await runSuite(one.runner, suiteCommand(one, heldOut), copy)) ? heldOut : []
}
