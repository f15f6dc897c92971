/**
 * The tests of a suite that is too big to be kept by name: about 30 bytes a test, whatever its
 * name. Only what messages may name is kept by name, within bounds: files, and skipped tests.
 *
 * @module
 */
import { LongWork } from '../../../internal/time.js'
import type { HashedTests, TestCounts, TestOutcome, TestOutcomes } from '../../test-outcomes.js'
import { HASH_LENGTH, hashOf, HashTable } from './hash-table.js'
import { fileOf, isFile } from './test-names.js'

/** Names that are kept, of files and of skipped tests each, and all their characters together. */
const MAX_NAMES = 20_000
const MAX_CHARACTERS = 1024 * 1024

const OUTCOMES = ['pass', 'fail', 'skip'] as const satisfies readonly TestOutcome[]

export class TestTable {
  readonly #tests: HashTable
  /** Of each test: four times the number of its file, plus that of its outcome. */
  readonly #details: Uint32Array
  /** Of each name that several tests have: how far they are numbered. */
  readonly #reached: Uint32Array
  readonly #reachedOfBroken = new Map<string, number>()
  readonly #files: HashTable
  readonly #fileNames: KeptNames = new KeptNames()
  readonly #skipped: KeptNames = new KeptNames()
  readonly #broken = new Map<string, TestOutcome>()
  readonly #totals: [pass: number, fail: number, skip: number] = [0, 0, 0]
  /** The last name and file, and what was found for them: they come several times in a row. */
  #last = { name: '', hash: '' }
  #lastFile = { name: '', row: -1 }

  /** @param capacity - the most tests that are ever added */
  constructor(capacity: number) {
    this.#tests = new HashTable(capacity)
    this.#details = new Uint32Array(capacity)
    this.#reached = new Uint32Array(capacity)
    this.#files = new HashTable(capacity)
  }

  /** The same tests, by hash. */
  static async of(tests: TestOutcomes): Promise<TestTable> {
    const entries = Object.entries(tests)
    const table = new TestTable(entries.length)
    const work = new LongWork()
    for (const [name, outcome] of entries) {
      table.set(name, outcome)
      if (work.isDue) await work.next()
    }
    return table
  }

  get size(): number {
    return this.#tests.size + this.#broken.size
  }

  get counts(): TestCounts {
    const [pass, fail, skip] = this.#totals
    const count = (wanted: TestOutcome): number =>
      [...this.#broken.values()].filter((outcome) => outcome === wanted).length
    return {
      total: this.size,
      passed: pass + count('pass'),
      failed: fail + count('fail'),
      skipped: skip + count('skip'),
    }
  }

  /** Files that could not be loaded, or stopped before their tests were done. */
  get broken(): ReadonlyMap<string, TestOutcome> {
    return this.#broken
  }

  has(name: string): boolean {
    return isFile(name) ? this.#broken.has(name) : this.#tests.find(this.#hashOf(name)) !== -1
  }

  /** Adds a test, or gives it another outcome. */
  set(name: string, outcome: TestOutcome): void {
    if (isFile(name)) {
      this.#broken.set(name, outcome)
      return
    }
    const known = this.#tests.size
    const row = this.#tests.add(this.#hashOf(name))
    if (row < known) this.#totals[this.#details[row]! & 3]!--
    const code = OUTCOMES.indexOf(outcome)
    this.#totals[code]!++
    this.#details[row] = this.#fileRow(fileOf(name)) * 4 + code
    if (outcome === 'skip') this.#skipped.add(row, name)
  }

  /** The number that a test has reached whose name others have as well; 0 unless one was noted. */
  reached(name: string): number {
    if (isFile(name)) return this.#reachedOfBroken.get(name) ?? 0
    const row = this.#tests.find(this.#hashOf(name))
    return row === -1 ? 0 : this.#reached[row]!
  }

  /** Notes that for a test that was added. */
  noteReached(name: string, number: number): void {
    if (isFile(name)) this.#reachedOfBroken.set(name, number)
    else this.#reached[this.#tests.find(this.#hashOf(name))] = number
  }

  /** The outcome of the test with this hash; undefined if there is none. */
  outcomeOf(hash: string): TestOutcome | undefined {
    const row = this.#tests.find(hash)
    return row === -1 ? undefined : OUTCOMES[this.#details[row]! & 3]
  }

  /** The name of the skipped test with this hash, if it was kept. */
  skippedName(hash: string): string | null {
    return this.#skipped.get(this.#tests.find(hash))
  }

  /** Is there a test in this file? */
  hasTestsOf(file: string): boolean {
    return this.#files.find(hashOf(file)) !== -1
  }

  /** The tests as the log keeps them. */
  async pack(): Promise<HashedTests> {
    const work = new LongWork()
    const files = this.#fileNames.size
    // Of each outcome: where the hashes of each file begin; those of unnamed files come last.
    const starts = OUTCOMES.map(() => new Uint32Array(files + 2))
    const placeOf = (row: number): [starts: Uint32Array, file: number] => {
      const details = this.#details[row]!
      return [starts[details & 3]!, Math.min(details >>> 2, files)]
    }
    for (let row = 0; row < this.#tests.size; row++) {
      const [ends, file] = placeOf(row)
      ends[file + 1]!++
      if (work.isDue) await work.next()
    }
    const names = Array.from({ length: files }, (_, file) => {
      const [pass, fail, skip] = starts.map((ends) => ends[file + 1]!) as [number, number, number]
      return [this.#fileNames.get(file)!, pass, fail, skip] as const
    })
    for (const ends of starts) for (let i = 1; i < ends.length; i++) ends[i]! += ends[i - 1]!
    const lists = this.#totals.map((total) => new Uint32Array((total * HASH_LENGTH) / 4))
    for (let row = 0; row < this.#tests.size; row++) {
      const [next, file] = placeOf(row)
      this.#tests.copy(row, lists[this.#details[row]! & 3]!, next[file]!++)
      if (work.isDue) await work.next()
    }
    const texts: string[] = []
    for (const list of lists) {
      await work.next()
      texts.push(Buffer.from(list.buffer).toString('latin1'))
    }
    const [pass, fail, skip] = texts as [string, string, string]
    const broken = Object.fromEntries(this.#broken)
    return { hashed: { files: names, pass, fail, skip, broken } }
  }

  #hashOf(name: string): string {
    if (name !== this.#last.name) this.#last = { name, hash: hashOf(name) }
    return this.#last.hash
  }

  #fileRow(name: string): number {
    if (name === this.#lastFile.name) return this.#lastFile.row
    const known = this.#files.size
    const row = this.#files.add(hashOf(name))
    if (row === known) this.#fileNames.add(row, name)
    this.#lastFile = { name, row }
    return row
  }
}

/** The names of the first rows, as long as there is room for them. */
class KeptNames {
  readonly #names = new Map<number, string>()
  #left = MAX_CHARACTERS

  get size(): number {
    return this.#names.size
  }

  add(row: number, name: string): void {
    this.#left -= name.length
    if (this.#left >= 0 && this.#names.size < MAX_NAMES) this.#names.set(row, name)
  }

  get(row: number): string | null {
    return this.#names.get(row) ?? null
  }
}

/**
 * Calls `visit` with each test that is kept by hash, but for broken files. `file` is null where its
 * name was not kept.
 */
export async function eachHashed(
  { hashed }: HashedTests,
  visit: (hash: string, outcome: TestOutcome, file: string | null) => void,
): Promise<void> {
  const work = new LongWork()
  for (const [column, outcome] of OUTCOMES.entries()) {
    const hashes = hashed[outcome]
    let file = -1
    let end = 0
    for (let at = 0; at < hashes.length; at += HASH_LENGTH) {
      while (at >= end && file < hashed.files.length) {
        file += 1
        end += (hashed.files[file]?.[column + 1] as number | undefined ?? 0) * HASH_LENGTH
      }
      visit(hashes.slice(at, at + HASH_LENGTH), outcome, hashed.files[file]?.[0] ?? null)
      if (work.isDue) await work.next()
    }
  }
}
