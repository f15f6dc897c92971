import type { Candidate } from './candidates.js'

/** Lines around a change that a diff shows, lines in all, and characters of each. */
const CONTEXT = 2
const MAX_LINES = 60
const MAX_LINE = 400
/** Patches that a list names. */
const MAX_LISTED = 20

/** What a search did, as it is told when it ends without a repair. */
export interface SearchRecord {
  /** Patches that ran, and those of them that reached their time limit. */
  tried: number
  late: number
  /** Files and functions in which patches were tried. */
  readonly files: Set<string>
  readonly places: Set<string>
  nearest: NearMiss | null
  /** Descriptions of the patches that were kept. */
  readonly kept: string[]
  /**
   * Patches that help and were not made, as a person refused them or their file cannot be written:
   * their descriptions with the reason, by key.
   */
  readonly refused: Map<string, string>
  /** Files that would have been looked at: they are no UTF-8 text, or too long. */
  readonly unread: Set<string>
  /** What the failing tests import, and counts as a test by its name, if they import no source. */
  readonly helpers: Set<string>
}

/** A patch that helped some tests, and harmed others. */
export interface NearMiss {
  readonly what: string
  readonly helped: number
  readonly harmed: number
  /** What it changes, line by line. */
  readonly diff: string
}

export function newRecord(): SearchRecord {
  return {
    tried: 0, late: 0, files: new Set(), places: new Set(), nearest: null, kept: [],
    refused: new Map(), unread: new Set(), helpers: new Set(),
  }
}

type Miss = Omit<NearMiss, 'diff'>

/** Keeps the patch that comes nearest to a repair. */
export function noteMiss(record: SearchRecord, miss: Miss, diff: () => string): void {
  if (miss.helped === 0) return
  const worth = ({ helped, harmed }: Miss): number => helped - harmed
  const { nearest } = record
  if (nearest !== null && worth(miss) <= worth(nearest)) return
  record.nearest = { ...miss, diff: diff() }
}

/** One paragraph: what was tried where, and what came nearest; the diff of that is below it. */
export function farewell(
  record: SearchRecord,
  failing: readonly string[],
  all: number,
  candidatesLeft: boolean,
): string {
  const { tried, late, files, places, nearest, kept, refused, unread, helpers } = record
  const names = some(failing)
  const where =
    files.size === 0 ? '' : ` in ${count(places.size, 'place')} of ${count(files.size, 'file')}`
  const slow =
    late === 0 ? '' : `, of which ${late} reached the time limit`
  const named =
    helpers.size === 0
      ? ''
      : ' Of what the tests import, these count as tests by their names, which are not changed: ' +
        `${some([...helpers])}.`
  const looked =
    tried === 0
      ? `There is no patch to try: no source file that could be the cause is known.${named}`
      : `${count(tried, 'patch', 'patches')} ${tried === 1 ? 'was' : 'were'} tried${where}${slow}.`
  const why = candidatesLeft ? ' More could be tried, but a run tries no more.' : ''
  const left =
    unread.size === 0 ? '' : ` Not looked at (no UTF-8 text, or too long): ${some([...unread])}.`
  const helped = kept.length + refused.size > 0
  const near =
    nearest === null
      ? tried === 0 ? '' : ` ${helped ? 'No other one' : 'None'} made another test pass.`
      : ` The nearest miss was ${nearest.what}: ${count(nearest.helped, 'more test')} would pass` +
        (nearest.harmed === 0 ? '.' : `, but ${nearest.harmed} that ${
          nearest.harmed === 1 ? 'passes' : 'pass'} now would fail.`)
  const lists = [
    ...listed('Kept, because they help', kept),
    ...listed('Not made, though they help', [...refused.values()]),
  ].join('\n')
  const made = lists === '' ? '' : ` ${lists}`
  const diff = nearest === null ? '' : `\n\nThe nearest miss:\n${nearest.diff}`
  return (
    `No candidate left: ${failing.length} of ${count(all, 'test')} still ` +
    `${failing.length === 1 ? 'fails' : 'fail'} (${names}). ${looked}${why}${left}${near}` +
    `${made}${diff}`
  )
}

function some(names: readonly string[]): string {
  return names.slice(0, 5).join('; ') + (names.length > 5 ? '; …' : '')
}

function listed(what: string, patches: readonly string[]): string[] {
  if (patches.length === 0) return []
  const more = patches.length > MAX_LISTED ? [`- … and ${patches.length - MAX_LISTED} more`] : []
  return [`${what}:`, ...patches.slice(0, MAX_LISTED).map((one) => `- ${one}`), ...more]
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`
}

/** One change, as people read it. */
export function describePatch(
  { path, line, start, end, text, operator }: Candidate,
  source: string,
): string {
  const before = short(source.slice(start, end))
  const after = short(text)
  const what =
    before === ''
      ? `add \`${after}\``
      : after === ''
        ? `remove \`${before}\``
        : `\`${before}\` → \`${after}\``
  return `${path}:${line} (${operator}) ${what}`
}

/**
 * The unified diff of two texts that differ in one place; a last line tells how many lines did not
 * fit.
 */
export function diffOfChange(path: string, before: string, after: string): string {
  const [a, b] = [before.split('\n'), after.split('\n')]
  const most = Math.min(a.length, b.length)
  let first = 0
  while (first < most && a[first] === b[first]) first += 1
  let same = 0
  while (same < most - first && a.at(-1 - same) === b.at(-1 - same)) same += 1
  const from = Math.max(0, first - CONTEXT)
  const to = Math.max(0, same - CONTEXT)
  const [goes, comes] = [a.slice(first, a.length - same), b.slice(first, b.length - same)]
  const shown = ({ length }: readonly string[]): string => `${from + 1},${length - to - from}`
  const lines = [
    `--- a/${path}`, `+++ b/${path}`, `@@ -${shown(a)} +${shown(b)} @@`,
    ...a.slice(from, first).map((line) => ` ${line}`),
    ...goes.map((line) => `-${line}`), ...comes.map((line) => `+${line}`),
    ...a.slice(a.length - same, a.length - to).map((line) => ` ${line}`),
  ]
  const rest = lines.length > MAX_LINES ? [`… ${lines.length - MAX_LINES} more lines`] : []
  return [
    ...lines
      .slice(0, MAX_LINES)
      .map((line) => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line)),
    ...rest,
  ].join('\n')
}

function short(piece: string): string {
  const flat = piece.replace(/\s+/g, ' ').trim()
  return flat.length > 60 ? `${flat.slice(0, 57)}…` : flat
}
