/**
 * Where a run can be forked: at its start, at the end of each iteration, and, once it has ended, at
 * its end. An event names the boundary that follows it within its iteration, or itself if it comes
 * after that boundary and before the next iteration.
 *
 * @module
 */
import { InvalidRequestError } from '../errors.js'
import type { RunRecord } from '../events.js'
import type { KeptTests } from '../goal.js'
import { readLog, type RecordReader } from '../log/read-log.js'

/** Records read from the store at once. */
const PAGE = 1_000

/** The field `at` of a fork request. */
export type ForkAt = 'end' | 'start' | { readonly iteration: number } | { readonly seq: number }

/** The point of a log at which a fork begins. */
export interface ForkPoint {
  /** `end`: the run has ended there. */
  readonly kind: 'start' | 'boundary' | 'end'
  /** The last record that counts. */
  readonly seq: number
  /** The tree of the folder at that point; null when none was stored. */
  readonly checkpointId: string | null
  /** The tests of the first check, when the point is before it. */
  readonly firstTests: KeptTests | null
}

/** A tree that the folder had. */
interface KnownTree {
  readonly seq: number
  readonly id: string
  readonly isStart: boolean
}

/** What the records of a run say about its boundaries. */
interface Outline {
  lastSeq: number
  startedSeq: number
  endSeq: number
  /** The `seq` of `iteration_complete`, by iteration. */
  readonly completed: Map<number, number>
  readonly trees: KnownTree[]
  firstTests: KeptTests | null
  /** Was the newest checkpoint one of the folder that was meant, not of the copy of it? */
  ofOriginal: boolean
  /** The tree that is being restored in the run's own folder. */
  restoring: string | null
  /** The iteration of the record that `at` names; null at the start. */
  named: number | null | undefined
}

/**
 * Finds the point that `at` names.
 *
 * @throws {@link InvalidRequestError} when there is no such point; {@link StoreError}.
 */
export async function findForkPoint(
  store: RecordReader,
  runId: string,
  at: ForkAt,
): Promise<ForkPoint> {
  const outline: Outline = {
    lastSeq: 0,
    startedSeq: 1,
    endSeq: Infinity,
    completed: new Map(),
    trees: [],
    firstTests: null,
    ofOriginal: false,
    restoring: null,
    named: undefined,
  }
  const seq = typeof at === 'object' && 'seq' in at ? at.seq : 0
  for await (const records of readLog(store, runId, PAGE)) {
    for (const record of records) {
      note(outline, record)
      if (record.seq === seq) outline.named = isOfStart(record) ? null : record.iteration
    }
  }
  return pointAt(outline, at)
}

/** The checkpoint at the start is made while the first iteration may be running already. */
function isOfStart({ iteration, kind, payload }: RunRecord): boolean {
  return iteration === 0 || (kind === 'checkpoint' && payload.reason === 'start')
}

function note(outline: Outline, record: RunRecord): void {
  const { seq } = record
  outline.lastSeq = seq
  switch (record.kind) {
    case 'run_created': {
      const id = record.private?.fork?.checkpoint_id ?? null
      if (id !== null) outline.trees.push({ seq, id, isStart: true })
      break
    }
    case 'run_started':
      outline.startedSeq = seq
      break
    case 'goal_check':
      outline.firstTests ??= record.private?.tests ?? null
      break
    case 'iteration_complete':
      outline.completed.set(record.payload.iteration, seq)
      break
    case 'run_end':
      outline.endSeq = seq
      break
    case 'checkpoint': {
      const { checkpoint_id: id, reason } = record.payload
      // Before an apply, the folder is stored that gets the changes: it is not the run's own.
      outline.ofOriginal = reason === 'apply'
      if (!outline.ofOriginal) outline.trees.push({ seq, id, isStart: reason === 'start' })
      break
    }
    case 'files_changing': {
      const { operation, after } = record.payload
      outline.restoring = operation === 'restore' && !outline.ofOriginal ? after : null
      break
    }
    case 'files_changed':
      if (outline.restoring !== null)
        outline.trees.push({ seq, id: outline.restoring, isStart: false })
      outline.restoring = null
      break
    default:
  }
}

function pointAt(outline: Outline, at: ForkAt): ForkPoint {
  const { completed, endSeq, lastSeq } = outline
  const hasEnded = endSeq < Infinity
  const last = Math.max(0, ...completed.keys())
  if (at === 'start') return startOf(outline)
  if (at === 'end') return hasEnded ? boundary(outline, lastSeq) : endOf(outline, last)
  if ('iteration' in at) {
    if (at.iteration === 0 || completed.has(at.iteration)) return endOf(outline, at.iteration)
    throw refusal('/at/iteration', `iteration ${at.iteration} has not ended`, last)
  }
  const { named } = outline
  if (named === undefined)
    throw refusal('/at/seq', `the last event of the run is ${lastSeq}`, last)
  if (at.seq >= endSeq) return boundary(outline, at.seq)
  if (named === null) return startOf(outline)
  const end = completed.get(named)
  if (end !== undefined) return boundary(outline, Math.max(end, at.seq))
  if (hasEnded) return boundary(outline, lastSeq)
  throw refusal('/at/seq', `event ${at.seq} is of iteration ${named}, which has not ended`, last)
}

function endOf(outline: Outline, iteration: number): ForkPoint {
  return iteration === 0
    ? startOf(outline)
    : boundary(outline, outline.completed.get(iteration) as number)
}

function startOf({ startedSeq, trees, firstTests }: Outline): ForkPoint {
  const tree = trees.findLast(({ isStart }) => isStart)
  return { kind: 'start', seq: startedSeq, checkpointId: tree?.id ?? null, firstTests }
}

function boundary({ endSeq, trees, firstTests }: Outline, seq: number): ForkPoint {
  const tree = trees.findLast((one) => one.seq <= seq || one.isStart)
  const kind = seq >= endSeq ? 'end' : 'boundary'
  return { kind, seq, checkpointId: tree?.id ?? null, firstTests }
}

function refusal(pointer: string, detail: string, last: number): InvalidRequestError {
  const known = last === 0 ? 'none has ended yet' : `the last that has ended is ${last}`
  const text = `names no end of an iteration: ${detail}; ${known}`
  return new InvalidRequestError([{ pointer, detail: text }])
}
