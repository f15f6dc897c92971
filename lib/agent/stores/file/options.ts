import { resolve } from 'node:path'
import { systemClock, type Clock } from '../../../internal/clock.js'
import type { StoreError } from '../../errors.js'
import type { Retention } from '../run-index.js'

/** Options of {@link FileStore}. */
export interface FileStoreOptions {
  /** The data directory; made if it is not there. Nothing else may write to it. */
  readonly directory: string
  /** Which ended runs are kept. @defaultValue all */
  readonly retain?: Retention | undefined
  /** Octets after which a file of the journal is followed by a new one. @defaultValue 16 MiB */
  readonly segmentBytes?: number | undefined
  /**
   * `group`: an append resolves once it is on the medium, with one sync for all that wait. `none`:
   * once the operating system has it, which outlives this process, and no loss of power.
   * @defaultValue 'group'
   */
  readonly sync?: 'group' | 'none' | undefined
  /** Told of work in the background that failed, and of damage that is found while runs go on. */
  readonly onWarning?: ((error: StoreError) => void) | undefined
  /** Tells how old a run is. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
}

/** The same with every default. */
export interface ResolvedFileStoreOptions {
  readonly directory: string
  readonly retain: Retention
  readonly segmentBytes: number
  readonly sync: 'group' | 'none'
  readonly onWarning: (error: StoreError) => void
  readonly clock: Clock
}

const DEFAULT_SEGMENT_BYTES = 16 << 20
const LEAST_SEGMENT_BYTES = 1 << 10
const MOST_SEGMENT_BYTES = 1 << 30

/** Fills in defaults. @throws TypeError that names the option that is wrong. */
export function resolveFileStoreOptions(options: FileStoreOptions): ResolvedFileStoreOptions {
  const { directory, retain = {}, segmentBytes = DEFAULT_SEGMENT_BYTES, sync = 'group' } = options
  if (typeof directory !== 'string' || directory === '') {
    throw new TypeError(`directory must be the path of a folder, got ${JSON.stringify(directory)}`)
  }
  if (
    !Number.isInteger(segmentBytes) ||
    segmentBytes < LEAST_SEGMENT_BYTES ||
    segmentBytes > MOST_SEGMENT_BYTES
  ) {
    throw new TypeError(`segmentBytes must be an integer from 1024 to 2^30, got ${segmentBytes}`)
  }
  if (sync !== 'group' && sync !== 'none') {
    throw new TypeError(`sync must be 'group' or 'none', got ${JSON.stringify(sync)}`)
  }
  checkRetention(retain)
  return {
    directory: resolve(directory),
    retain: { ...retain },
    segmentBytes,
    sync,
    onWarning: options.onWarning ?? (() => {}),
    clock: options.clock ?? systemClock,
  }
}

/** @throws TypeError that names the field that is wrong. */
export function checkRetention({ runs, days }: Retention): void {
  if (runs !== undefined && !(Number.isInteger(runs) && runs >= 0)) {
    throw new TypeError(`retain.runs must be an integer of 0 or more, got ${runs}`)
  }
  if (days !== undefined && !(days >= 0)) {
    throw new TypeError(`retain.days must be 0 or more, got ${days}`)
  }
}
