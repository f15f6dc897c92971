import type { DependencyJob, FoundDependencies } from './dependency-job.js'
import type { FileSystemTime } from './find-touched.js'

/** What to copy, and how. All folders are absolute, real paths. */
export interface CopyJob {
  readonly from: string
  /** Does not exist; the folder above it does. */
  readonly to: string
  /** First: `from`, and where its copy will be found. Then other folders that are copied. */
  readonly copies: readonly { readonly from: string; readonly to: string }[]
  readonly closed: readonly string[]
  readonly maxBytes: number
  /** May folders of dependencies be left to be mounted? */
  readonly mounts: boolean
  /** Does everything in the copy get access time 0? */
  readonly unread?: boolean
  /** Is it for a sealed check? */
  readonly sealed?: boolean
  /** What is not copied, be it a file, a link or a folder. */
  readonly without?: readonly string[]
}

/** What was copied. */
export interface CopyResult {
  readonly files: number
  readonly bytes: number
  /** Relative paths of folders of packages that are empty, to be mounted read-only. */
  readonly readOnly: readonly string[]
  /** Is there a file of Python, outside of dependencies? */
  readonly hasPython: boolean
  readonly notes: readonly string[]
}

/** What is to be done in a thread of its own; `aborted` becomes 1 when it is to stop. */
export type CopyTask =
  | { readonly t: 'copy'; readonly job: CopyJob; readonly aborted: Int32Array }
  /** Waits for what still writes into the folder. */
  | { readonly t: 'remove'; readonly folder: string }
  /** Those of `isLarger`. */
  | {
      readonly t: 'measure'
      readonly args: readonly [string, number, readonly string[], readonly string[]]
    }
  | {
      readonly t: 'touched'
      readonly folder: string
      readonly since: FileSystemTime
      readonly aborted: Int32Array
    }
  | {
      readonly t: 'dependencies'
      readonly job: DependencyJob
      /** What they are compared with; null: all are hashed. */
      readonly before: FoundDependencies | null
      readonly aborted: Int32Array
    }

/** What it reports. */
export type CopyReport<Result = unknown> =
  | { readonly result: Result }
  | { readonly failed: 'aborted' | 'too large' }
  | { readonly error: string; readonly code: string | undefined }
