import { resolve } from 'node:path'
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import { systemClock, type Clock } from '../../../internal/time.js'
import type { StoreError } from '../../errors.js'
import { checkRetention, type Retention } from '../retention.js'
import { warn } from '../../output.js'

/** Options of {@link FileStore}. */
export interface FileStoreOptions {
  /** The data directory, created if missing. Nothing else may write to it. */
  readonly directory: string
  /** Which ended runs are kept. @defaultValue all */
  readonly retain?: Retention | undefined
  /** Size at which a new file of the journal is started. @defaultValue 16 MiB */
  readonly segmentBytes?: number | undefined
  /**
   * `group`: an append resolves once it is synced to disk, with one sync for all waiting appends.
   * `none`: once the operating system has it, which survives a crash of this process but not a loss
   * of power.
   * @defaultValue 'group'
   */
  readonly sync?: 'group' | 'none' | undefined
  /**
   * Called with each piece of damage that is found, by `open()` and later, and when background work
   * fails. Must not throw.
   * @defaultValue `process.emitWarning`, which writes to standard error
   */
  readonly onWarning?: ((error: StoreError) => void) | undefined
  /** The time against which `retain.days` counts. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
}

/** {@link FileStoreOptions} with every default filled in. */
export type ResolvedFileStoreOptions = {
  readonly [K in keyof FileStoreOptions]-?: Exclude<FileStoreOptions[K], undefined>
}

const OPTIONS: OptionKinds<FileStoreOptions> = {
  directory: 'string! the path of a folder', retain: 'object', segmentBytes: 'number',
  sync: 'string', onWarning: 'function', clock: 'object',
}
const DEFAULT_SEGMENT_BYTES = 16 << 20
const MIN_SEGMENT_BYTES = 1 << 10
const MAX_SEGMENT_BYTES = 1 << 30

/** Fills in defaults. @throws TypeError that names an invalid option. */
export function resolveFileStoreOptions(options: FileStoreOptions): ResolvedFileStoreOptions {
  checkOptions(options, OPTIONS, 'new FileStore()')
  const { directory, retain = {}, segmentBytes = DEFAULT_SEGMENT_BYTES, sync = 'group' } = options
  if (directory === '') throw new TypeError('directory must be the path of a folder, got nothing')
  const fits = segmentBytes >= MIN_SEGMENT_BYTES && segmentBytes <= MAX_SEGMENT_BYTES
  if (!Number.isInteger(segmentBytes) || !fits) {
    throw new TypeError(`segmentBytes must be an integer from 1024 to 2^30, got ${segmentBytes}`)
  }
  if (sync !== 'group' && sync !== 'none') {
    throw new TypeError(`sync must be 'group' or 'none', got ${JSON.stringify(sync)}`)
  }
  return {
    directory: resolve(directory),
    retain: checkRetention(retain),
    segmentBytes,
    sync,
    onWarning: options.onWarning ?? emitWarning,
    clock: options.clock ?? systemClock,
  }
}

function emitWarning({ message, code }: StoreError): void {
  warn(message, { type: 'StoreWarning', code })
}
