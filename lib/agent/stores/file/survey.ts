/**
 * Finds out which files of a directory make up its journal, and changes nothing.
 *
 * 1. Of two files of one segment the one with the higher generation counts, if it is whole; it was
 *    complete before it got its name.
 * 2. An index file is only used with the files that it lists, and with no other rewritten ones; and
 *    not one that an earlier version has written beside contents that it did not know.
 *
 * @module
 */
import { join } from 'node:path'
import { StoreError } from '../../errors.js'
import { RECORD_VERSION } from '../../events.js'
import type { ChainedSegment } from './chain.js'
import type { OpenFiles } from './data-file.js'
import { readIndexFile, type LoadedIndexFile } from './index-file.js'
import { JOURNAL_VERSION } from './journal-line.js'
import { OBJECTS_FOLDER } from './objects.js'
import {
  isWhole,
  makeSegment,
  parseSegmentName,
  readHeader,
  type Segment,
  type SegmentHeader,
} from './segment.js'
import { readTail, type JournalTail } from './tail-file.js'

interface Choice {
  readonly links: readonly ChainedSegment[]
  /** Left behind by a rewrite that a crash interrupted. */
  readonly obsolete: readonly Segment[]
}

/** What {@link surveyDirectory} found. */
export interface Survey extends Choice {
  readonly files: readonly Segment[]
  readonly tail: JournalTail | 'damaged' | null
  readonly indexFile: LoadedIndexFile | null
  readonly isIndexDamaged: boolean
  readonly isIndexed: boolean
}

/**
 * Reads what is in a directory.
 *
 * @throws {@link StoreError} when a file is of a newer version.
 */
export async function surveyDirectory(directory: string, open: OpenFiles): Promise<Survey> {
  const files = listSegments(directory, open)
  const tail = readTail(open.disk, directory)
  const found = readIndexFile(directory, open)
  const isIndexDamaged = found === 'damaged'
  const indexFile = isIndexDamaged ? null : found
  const isIncomplete = indexFile !== null && lacksContents(indexFile, open.disk.list(directory))
  const isIndexed = indexFile !== null && !isIncomplete && matches(indexFile, files)
  const choice = isIndexed ? await filesOf(indexFile, files) : await newestFiles(files)
  for (const { segment, header } of choice.links) checkVersion(segment, header)
  for (const segment of choice.obsolete) checkVersion(segment, await readHeader(segment))
  return { files, tail, indexFile, isIndexDamaged, isIndexed, ...choice }
}

/** Was the index file written by an earlier version beside contents that it did not know? */
function lacksContents(
  { records, quarantine }: LoadedIndexFile,
  names: readonly string[],
): boolean {
  // The first version knows nothing of checkpoints, and has left them out of the heads.
  if (records < 2 && names.includes(OBJECTS_FOLDER)) return true
  return (
    records < RECORD_VERSION && quarantine.some(([, code]) => code === 'ERR_AGENT_STORE_VERSION')
  )
}

function listSegments(directory: string, open: OpenFiles): Segment[] {
  const files = open.disk.list(directory).flatMap((name) => {
    const parsed = parseSegmentName(name)
    if (parsed === null) return []
    const { size } = open.disk.stat(join(directory, name))
    return [makeSegment(directory, parsed.id, parsed.generation, size, open)]
  })
  return files.sort((a, b) => a.id - b.id || a.generation - b.generation)
}

/** @throws {@link StoreError} with `ERR_AGENT_STORE_VERSION` when this code cannot read it. */
function checkVersion({ file }: Segment, header: SegmentHeader | null | undefined): void {
  const version = header?.line.version ?? 0
  if (version <= JOURNAL_VERSION) return
  throw new StoreError(
    'ERR_AGENT_STORE_VERSION',
    `${file.path} was written by a newer version (format ${version}, this one reads up to ` +
      `${JOURNAL_VERSION}); install that version or use another directory`,
  )
}

/** Do all files that the index file lists exist, with at least the sizes that they had? */
function matches({ segments, position }: LoadedIndexFile, files: readonly Segment[]): boolean {
  const sizes = new Map(files.map(({ id, generation, size }) => [`${id}.${generation}`, size]))
  return segments.every(([id, generation, size]) => {
    const least = id === position[0] ? position[1] : id < position[0] ? size : 0
    return (sizes.get(`${id}.${generation}`) ?? -1) >= least
  })
}

async function filesOf(
  { segments, position }: LoadedIndexFile,
  files: readonly Segment[],
): Promise<Choice> {
  const sizes = new Map(segments.map(([id, generation, size]) => [`${id}.${generation}`, size]))
  const links: ChainedSegment[] = []
  const obsolete: Segment[] = []
  for (const segment of files) {
    const size = sizes.get(`${segment.id}.${segment.generation}`)
    if (segment.id > position[0]) continue
    if (size === undefined) obsolete.push(segment)
    else {
      if (segment.id < position[0]) segment.size = size
      links.push({ segment, header: undefined })
    }
  }
  for (const segment of files.filter(({ id }) => id > position[0])) {
    // A crash came before an index file listed this rewrite; what it replaces is still there.
    if (segment.generation > 0) obsolete.push(segment)
    else links.push({ segment, header: await readHeader(segment) })
  }
  return { links, obsolete }
}

async function newestFiles(files: readonly Segment[]): Promise<Choice> {
  const newest = new Map<number, ChainedSegment>()
  for (const segment of files) {
    const header = await readHeader(segment)
    const isUsable = header !== null && isWhole(segment, header)
    if (isUsable || !newest.has(segment.id)) newest.set(segment.id, { segment, header })
  }
  for (const { segment, header } of [...newest.values()]) {
    if (header === null || header === undefined || !isWhole(segment, header)) continue
    for (const id of header.line.replaces) if (id !== segment.id) newest.delete(id)
  }
  const links = [...newest.values()]
  const current = new Set(links.map(({ segment }) => segment))
  return { links, obsolete: files.filter((file) => !current.has(file)) }
}

