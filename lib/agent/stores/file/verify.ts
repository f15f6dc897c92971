import type { Catalog, WarmPart } from './catalog.js'
import { PLACE, pairs } from './catalog.js'
import { isIntact } from './journal-line.js'
import type { RunReader } from './run-reader.js'
import { scanSegment, type Segment } from './segment.js'

/**
 * Reads a segment that the checkpoint vouches for, and sets apart the runs whose lines are not as
 * they were written. Resolves with their ids. Waits for `pause` after each megabyte.
 */
export async function verifySegment(
  segment: Segment,
  catalog: Catalog,
  reader: RunReader,
  pause?: () => Promise<void>,
): Promise<string[]> {
  const damaged: { readonly start: number; readonly end: number }[] = []
  // The last segment grows meanwhile; what is there now is whole lines.
  const note = (line: Buffer, start: number): void => {
    if (!isIntact(line)) damaged.push({ start, end: start + line.length })
  }
  const rest = await scanSegment({ ...segment }, 0, note, pause)
  if (rest.length > 0) damaged.push({ start: segment.size - rest.length, end: segment.size })
  if (damaged.length === 0) return []
  const touches = ({ places }: WarmPart): number | null => {
    // Written anew in the meantime, from lines that were checked.
    if (catalog.segments.get(segment.id) !== segment) return null
    for (let i = 0; i < places.length; i += PLACE) {
      if (places[i] !== segment.id) continue
      const start = places[i + 1] ?? 0
      const end = start + (places[i + 2] ?? 0)
      const hit = damaged.find((one) => one.start < end && one.end > start)
      if (hit !== undefined) return hit.start
    }
    return null
  }
  const found: string[] = []
  for (const run of catalog.runs.all()) {
    if (![...pairs(run.spread)].some(([id]) => id === segment.id)) continue
    const at = await reader.use(run, touches)
    if (at === null || catalog.runs.get(run.runId) !== run) continue
    const reason = `${segment.file.path} at octet ${at} is damaged`
    catalog.setApart(run.runId, 'ERR_AGENT_STORE_CORRUPT', reason, [segment.id])
    found.push(run.runId)
  }
  return found
}
