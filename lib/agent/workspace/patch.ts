/**
 * Net changes as one patch of exact bytes, as `git diff --text` writes it, which `git apply` and
 * `patch -p1` take alike.
 *
 * 1. Contents are compared as text, byte for byte, whatever they are: GNU patch does not know git's
 *    encoding of binary content.
 * 2. Programs that apply a patch section by section must find room for what comes: sections that
 *    take something away come first. GNU patch 2.7 removes files at its end all the same, so that
 *    it cannot put a file where there was a folder, or the other way round; git can.
 * 3. Nothing is redacted: a caller that must not show secrets asks `secretsIn` first.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { inSlices } from '../../internal/time.js'
import { CheckpointError } from '../errors.js'
import type { ContentOf, TreeEntry } from '../tree.js'
import { diffNames, renderDiff, type DiffNames } from './diff.js'
import type { TreeChange } from './net-changes.js'
import { bytesOfName } from '../../internal/bytes.js'

const MAX_PATCH_BYTES = 64 * 1024 * 1024

/**
 * The patch from before these changes to after them.
 *
 * @param maxBytes - bytes of the patch at most
 * @throws {@link CheckpointError} with `not_kept` and the paths whose content is not stored; with
 * `too_large` when the patch exceeds its limit.
 */
export async function patchOf(
  changes: readonly TreeChange[],
  contentOf: ContentOf,
  maxBytes: number = MAX_PATCH_BYTES,
): Promise<Buffer> {
  requireStored(changes)
  const parts: Buffer[] = []
  let left = maxBytes
  for (const section of sectionsOf(changes)) {
    for (const part of await partsOf(section, contentOf)) {
      left -= part.length
      if (left < 0) throw tooLarge(maxBytes)
      parts.push(part)
    }
  }
  return Buffer.concat(parts)
}

function requireStored(changes: readonly TreeChange[]): void {
  const isMissing = ({ before, after }: TreeChange): boolean =>
    before?.sha256 !== after?.sha256 && (before?.stored === false || after?.stored === false)
  const paths = changes.filter(isMissing).map(({ path }) => path)
  if (paths.length === 0) return
  throw new CheckpointError(
    'not_kept',
    `there is no patch, since the content of ${paths.length} files was not stored, the first of ` +
      `which is ${paths[0]}; the run's share of storage was used up`,
    paths,
  )
}

function tooLarge(maxBytes: number): CheckpointError {
  return new CheckpointError(
    'too_large',
    `the patch has more than ${maxBytes} bytes; get the changed files one by one`,
  )
}

/** One part of a patch. */
interface Section {
  readonly oldPath: string
  readonly path: string
  readonly before: TreeEntry | null
  readonly after: TreeEntry | null
}

/** Deletions, then renames, then the rest: see rule 2. */
function sectionsOf(changes: readonly TreeChange[]): readonly Section[] {
  const [gone, moved, rest]: [Section[], Section[], Section[]] = [[], [], []]
  for (const { path, oldPath, before, after } of changes) {
    const from = oldPath ?? path
    // Patch takes a renamed link for a file, since no line names its mode.
    const isWhole = oldPath === null ? before?.kind === after?.kind : before?.kind === 'file'
    const whole = { oldPath: from, path, before, after }
    if (before === null) rest.push(whole)
    else if (after === null) gone.push(whole)
    else if (isWhole) (oldPath === null ? rest : moved).push(whole)
    else {
      gone.push({ oldPath: from, path: from, before, after: null })
      rest.push({ oldPath: path, path, before: null, after })
    }
  }
  return [...gone, ...moved, ...rest]
}

async function partsOf(section: Section, contentOf: ContentOf): Promise<readonly Buffer[]> {
  const { oldPath, path, before, after } = section
  const isMoved = oldPath !== path
  const [oldMode, mode] = [gitMode(before), gitMode(after)]
  const isSame = before?.sha256 === after?.sha256
  // Git knows of no other modes, so that there may be nothing to tell.
  if (isSame && oldMode === mode && !isMoved) return []
  const [old, now] = [quoted(`a/${oldPath}`), quoted(`b/${path}`)]
  const head = [`diff --git ${old} ${now}`]
  if (before === null) head.push(`new file mode ${mode}`)
  else if (after === null) head.push(`deleted file mode ${oldMode}`)
  else if (oldMode !== mode) head.push(`old mode ${oldMode}`, `new mode ${mode}`)
  if (isMoved) {
    head.push('similarity index 100%')
    head.push(`rename from ${quoted(oldPath)}`, `rename to ${quoted(path)}`)
  }
  if (isSame) return [Buffer.from(`${head.join('\n')}\n`, 'latin1')]
  const [a, b] = await Promise.all([before, after].map((it) => it && contentOf(it)))
  const modeAtEnd = before !== null && after !== null && oldMode === mode ? ` ${mode}` : ''
  head.push(`index ${blobId(a!)}..${blobId(b!)}${modeAtEnd}`)
  const names = { ...diffNames('', '', before === null, after === null) }
  if (before !== null) names.before = old
  if (after !== null) names.after = now
  const body = await textBody(a!, b!, names)
  return [Buffer.from(head.map((line) => `${line}\n`).join(''), 'latin1'), body]
}

/** The modes that git has. */
function gitMode(entry: TreeEntry | null): string {
  if (entry?.kind === 'link') return '120000'
  return ((entry?.mode ?? 0) & 0o100) === 0 ? '100644' : '100755'
}

/** A name as git writes it, in C style unless it is plain; one character per byte. */
function quoted(name: string): string {
  const bytes = bytesOfName(name).toString('latin1')
  if (/^[!#-[\]-~]+$/.test(bytes)) return bytes
  return `"${bytes.replace(/[^ !#-[\]-~]/g, escaped)}"`
}

function escaped(char: string): string {
  if (char === '"' || char === '\\') return `\\${char}`
  return `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`
}

/** What git calls the content; zeros for no file. */
function blobId(content: Uint8Array | null): string {
  if (content === null) return '0'.repeat(40)
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

async function textBody(
  before: Uint8Array | null,
  after: Uint8Array | null,
  names: DiffNames,
): Promise<Buffer> {
  const [a, b] = [latin1(before), latin1(after)]
  const { text } = await inSlices(renderDiff(a, b, names, Infinity, 'as it is'))
  return Buffer.from(text, 'latin1')
}

/** One character per byte. */
function latin1(content: Uint8Array | null): string {
  if (content === null) return ''
  return Buffer.from(content.buffer, content.byteOffset, content.length).toString('latin1')
}
