import { decodeLine, isIntact } from './journal-line.js'
import { scanSegment, type Segment } from './segment.js'

const GROUP = /^\{"crc":"[0-9a-f]{8}","group":/

/**
 * The size of the last segment without a group that was being written when the power failed. Its
 * blocks reach the disk in any order, so what looks like damage may be followed by intact lines;
 * but no other group follows, since that would have waited for the sync of this one.
 *
 * @param acknowledged - what is before this offset has been synced for certain; a line begins here.
 */
export async function sizeWithoutTornGroup(
  segment: Segment,
  acknowledged: number,
): Promise<number> {
  let group = { start: 0, end: 0 }
  /** Where the torn group begins, and where it ends if that is known. */
  let torn: { readonly start: number; readonly end: number } | null = null
  let isFollowed = false
  await scanSegment(segment, acknowledged, (line, offset) => {
    const isGroup = isIntact(line) && GROUP.test(line.toString('latin1', 0, 32))
    if (torn !== null) {
      isFollowed ||= isIntact(line) && (isGroup || offset >= torn.end)
    } else if (!isIntact(line)) {
      torn = offset < group.end ? group : { start: offset, end: Infinity }
    } else if (isGroup) {
      const parsed = decodeLine(line)
      const bytes = parsed?.type === 'group' ? parsed.bytes : 0
      group = { start: offset, end: offset + line.length + 1 + bytes }
    }
  })
  const found = torn as { readonly start: number } | null
  return found === null || isFollowed ? segment.size : found.start
}
