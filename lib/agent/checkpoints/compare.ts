import type { NetChange } from '../checkpoint.js'
import type { ChangeCounts } from '../events.js'

/** The net change between two checkpoints, in numbers. */
export interface ChangeSummary {
  readonly counts: ChangeCounts
  readonly files: readonly Pick<NetChange, 'path' | 'status' | 'additions' | 'deletions'>[]
}
