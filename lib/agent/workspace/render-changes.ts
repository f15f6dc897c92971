/**
 * Net changes as clients see them, and their numbers of lines. Secrets are redacted in what is
 * shown; counts need no redaction. All of it is bounded, and other work is done in between.
 *
 * @module
 */
import { inSlices, LongWork } from '../../internal/time.js'
import type { NetChange } from '../checkpoint.js'
import { CheckpointError } from '../errors.js'
import { redactor } from '../redaction/redactor.js'
import type { ContentOf, TreeEntry } from '../tree.js'
import {
  comparableText, compareRedacted, compareTexts, diffNames, MAX_COMPARED_BYTES, renderDiff,
} from './diff.js'
import { countLines } from '../../internal/line-diff.js'
import { changedPackages, type LockChange } from './diff-lockfile.js'
import { isLockFile } from './lock-files.js'
import type { TreeChange } from './net-changes.js'

/** Changes that are described at once. */
export const MAX_CHANGES = 2_000
/** Bytes of all diffs of one answer. */
const MAX_DIFF_BYTES = 2 * 1024 * 1024
/** Bytes of content that are compared for one answer; the lines of what is beyond count as 0. */
const MAX_COMPARED = 64 * 1024 * 1024
/** Lock files of which the packages are compared. */
const MAX_LOCKS = 5
/** UTF-16 units that are searched for secrets at once, and those that two searches share. */
const [SEARCHED_AT_ONCE, OVERLAP] = [128 * 1024, 32 * 1024]

/** A change; no verdict is known. */
export type DescribedChange = Omit<NetChange, 'group'>

/** Describes at most 2 000 changes; `more` tells how many others there are. */
export async function describeChanges(
  changes: readonly TreeChange[],
  contentOf: ContentOf,
): Promise<{ readonly changes: readonly DescribedChange[]; readonly more: number }> {
  const described: DescribedChange[] = []
  const contents = new Contents(contentOf)
  let left = MAX_DIFF_BYTES
  const work = new LongWork()
  for (const change of changes.slice(0, MAX_CHANGES)) {
    if (work.isDue) await work.next()
    const one = await describe(change, contents, left)
    left -= Buffer.byteLength(one.diff ?? '')
    described.push(one)
  }
  return { changes: described, more: changes.length - described.length }
}

/** The lines that were added and removed, and those of each path. */
export interface CountedChanges {
  readonly files: number
  readonly additions: number
  readonly deletions: number
  /** Files whose lines do not count, as they are binary or too large. */
  readonly uncounted: number
  /** At most 2 000. */
  readonly paths: readonly CountedChange[]
  /** Of lock files, at most 5. */
  readonly locks: readonly LockChange[]
}

/** The same for one path, without a diff. */
export type CountedChange = Omit<DescribedChange, 'diff' | 'redacted'>

/** Counts without making diffs. */
export async function countChanges(
  changes: readonly TreeChange[],
  contentOf: ContentOf,
): Promise<CountedChanges> {
  const contents = new Contents(contentOf)
  const paths: CountedChange[] = []
  const locks: LockChange[] = []
  let [additions, deletions, uncounted] = [0, 0, 0]
  const work = new LongWork()
  for (const change of changes) {
    if (work.isDue) await work.next()
    const texts = await contents.texts(change)
    const counts = await count(texts)
    additions += counts.additions
    deletions += counts.deletions
    if (texts === 'binary' || texts === 'unknown') uncounted += 1
    if (paths.length < MAX_CHANGES) paths.push({ ...fieldsOf(change), ...counts })
    if (texts !== 'same' && isLockFile(change.path) && locks.length < MAX_LOCKS)
      locks.push(await lockChange(change.path, texts, counts))
  }
  return { files: changes.length, additions, deletions, uncounted, paths, locks }
}

async function lockChange(
  path: string,
  texts: Texts,
  { additions, deletions }: Counts,
): Promise<LockChange> {
  const { packages, more } =
    typeof texts === 'string'
      ? { packages: null, more: 0 }
      : await inSlices(changedPackages(path, texts.before, texts.after))
  return { path, packages, more, additions, deletions }
}

/**
 * The paths of changes of which a patch would show a secret: in the lines that a diff shows, or
 * anywhere in binary content.
 */
export async function secretsIn(
  changes: readonly TreeChange[],
  contentOf: ContentOf,
): Promise<readonly string[]> {
  const paths: string[] = []
  const work = new LongWork()
  for (const change of changes) {
    if (work.isDue) await work.next()
    if (await showsSecret(change, contentOf)) paths.push(change.path)
  }
  return paths
}

async function showsSecret(change: TreeChange, contentOf: ContentOf): Promise<boolean> {
  const { before, after } = change
  if (before?.sha256 === after?.sha256) return false
  const contents = await Promise.all([before, after].map((it) => it && contentOf(it)))
  const [old, now] = contents.map((it) => comparableText(it)) as [string | null, string | null]
  if (old !== null && now !== null) return (await inSlices(compareRedacted(old, now))).redacted
  for (const content of contents) if (content !== null && (await holdsSecret(content))) return true
  return false
}

/** True for content in which something would be redacted. */
export async function holdsSecret(content: Uint8Array): Promise<boolean> {
  return await inSlices(searchSecrets(content))
}

function* searchSecrets(content: Uint8Array): Generator<void, boolean> {
  const step = SEARCHED_AT_ONCE - OVERLAP
  for (let at = 0; at < content.length; at += step) {
    // Bytes that are not UTF-8 become marks, which are part of no secret.
    const part = content.subarray(at, at + SEARCHED_AT_ONCE)
    const text = Buffer.from(part.buffer, part.byteOffset, part.length).toString('utf8')
    if (redactor.lines(text) !== text) return true
    yield
  }
  return false
}

/** Reads contents to be compared, until there were too many. */
class Contents {
  readonly #contentOf: ContentOf
  #bytesLeft = MAX_COMPARED

  constructor(contentOf: ContentOf) {
    this.#contentOf = contentOf
  }

  /** Both texts; `same`, `binary`, or `unknown` for what is too large or not stored. */
  async texts({ before, after }: TreeChange): Promise<Texts> {
    if (before?.sha256 === after?.sha256 && before?.kind === after?.kind) return 'same'
    const [old, now] = [await this.#read(before), await this.#read(after)]
    if (old === undefined || now === undefined) return 'unknown'
    const [a, b] = [comparableText(old), comparableText(now)]
    return a === null || b === null ? 'binary' : { before: a, after: b }
  }

  async #read(entry: TreeEntry | null): Promise<Uint8Array | null | undefined> {
    if (entry === null) return null
    const { size, stored } = entry
    if (stored === false || size > MAX_COMPARED_BYTES || size > this.#bytesLeft) return undefined
    this.#bytesLeft -= size
    return await this.#contentOf(entry).catch((error: unknown) => {
      if (error instanceof CheckpointError && error.problem === 'not_kept') return undefined
      throw error
    })
  }
}

type Texts = 'same' | 'binary' | 'unknown' | { readonly before: string; readonly after: string }

interface Counts {
  readonly additions: number
  readonly deletions: number
  readonly binary: boolean
}

async function count(texts: Texts): Promise<Counts> {
  if (typeof texts === 'string') {
    return { additions: 0, deletions: 0, binary: texts === 'binary' }
  }
  const { changes } = await inSlices(compareTexts(texts.before, texts.after))
  const { added, removed } = countLines(changes)
  return { additions: added, deletions: removed, binary: false }
}

async function describe(
  change: TreeChange,
  contents: Contents,
  bytesLeft: number,
): Promise<DescribedChange> {
  const fields = fieldsOf(change)
  const texts = await contents.texts(change)
  if (typeof texts === 'string') {
    const diff = texts === 'unknown' ? null : ''
    return { ...fields, ...(await count(texts)), diff, redacted: false }
  }
  const { path, old_path, status } = fields
  const names = diffNames(old_path ?? path, path, status === 'added', status === 'deleted')
  const rendered = await inSlices(renderDiff(texts.before, texts.after, names, bytesLeft))
  const { added, removed, redacted } = rendered
  const diff = rendered.cut ? null : rendered.text
  return { ...fields, additions: added, deletions: removed, binary: false, diff, redacted }
}

function fieldsOf({ path, oldPath, status, before, after }: TreeChange): Pick<
  NetChange,
  'path' | 'old_path' | 'status' | 'mode'
> {
  return { path, old_path: oldPath, status, mode: { before: modeOf(before), after: modeOf(after) } }
}

/** The kind and permissions as git writes them; null for no file. */
export function modeOf(entry: Pick<TreeEntry, 'kind' | 'mode'> | null): string | null {
  if (entry === null) return null
  if (entry.kind === 'link') return '120000'
  return `100${(entry.mode & 0o777).toString(8).padStart(3, '0')}`
}
