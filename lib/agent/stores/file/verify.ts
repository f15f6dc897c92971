import { EXTENT, pairs, type Catalog, type WarmPart } from './catalog.js'
import { isIntact } from './journal-line.js'
import { ignoreCorrupt, type RunReader } from './run-reader.js'
import { scanSegment, type Segment } from './segment.js'

/** How {@link verifySegments} proceeds. */
export interface Verification {
  /** Called with each run that was quarantined. */
  readonly onDamaged: (runId: string) => void
  /** Called with a sentence for each damaged line. */
  readonly onProblem: (problem: string) => void
  /** Ends the verification when it returns true. */
  readonly isClosed: () => boolean
  /** Awaited after each chunk, to leave time for other work. */
  readonly pause?: () => Promise<void>
}

/** Checks the lines of every segment, and quarantines the runs whose lines are damaged. */
export async function verifySegments(
  catalog: Catalog,
  reader: RunReader,
  steps: Verification,
): Promise<void> {
  for (const segment of [...catalog.segments.values()]) {
    if (steps.isClosed()) return
    // A segment that is gone was rewritten, from lines that were checked.
    if (catalog.segments.get(segment.id) !== segment) continue
    await verifySegment(segment, catalog, reader, steps)
  }
}

async function verifySegment(
  segment: Segment,
  catalog: Catalog,
  reader: RunReader,
  { onDamaged, onProblem, pause }: Verification,
): Promise<void> {
  const damaged: { readonly start: number; end: number }[] = []
  const check = (line: Buffer, start: number): void => {
    if (isIntact(line)) return
    const last = damaged.at(-1)
    if (last !== undefined && last.end === start - 1) last.end = start + line.length
    else damaged.push({ start, end: start + line.length })
  }
  // A copy, because the last segment grows meanwhile; up to its present size it is whole lines.
  const rest = await scanSegment({ ...segment }, 0, check, pause)
  if (rest.length > 0) damaged.push({ start: segment.size - rest.length, end: segment.size })
  if (damaged.length === 0 || catalog.segments.get(segment.id) !== segment) return
  for (const { start } of damaged) onProblem(`${segment.file.path} at byte ${start} is damaged`)
  const firstDamage = ({ extents }: WarmPart): number | null => {
    // Rewritten in the meantime, from lines that were checked.
    if (catalog.segments.get(segment.id) !== segment) return null
    for (let i = 0; i < extents.length; i += EXTENT) {
      if (extents[i] !== segment.id) continue
      const start = extents[i + 1] ?? 0
      const end = start + (extents[i + 2] ?? 0)
      const hit = damaged.find((one) => one.start < end && one.end > start)
      if (hit !== undefined) return hit.start
    }
    return null
  }
  for (const run of catalog.runs.all()) {
    if (catalog.quarantined.has(run.runId)) continue
    if (![...pairs(run.bytesBySegment)].some(([id]) => id === segment.id)) continue
    // One that is damaged in the index file as well is quarantined by the reader.
    const at = await reader.use(run, firstDamage).catch(ignoreCorrupt)
    if (at === null || catalog.runs.get(run.runId) !== run) continue
    const reason = `${segment.file.path} at byte ${at} is damaged`
    catalog.quarantine(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment.id])
    onDamaged(run.runId)
  }
}
