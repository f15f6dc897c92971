/**
 * Work on folders, and how a thread that does it talks with the one that asked for it: a task goes
 * in, a report comes out, and in between the task may ask questions. Whole trees stay in the
 * thread; what crosses is small, or is transferred.
 *
 * @module
 */
import { describeError, systemCode } from '../../internal/errors.js'
import { onOwnFilesNow } from '../exhaustion.js'
import { findTouched, type FileSystemTime } from './find-touched.js'
import type { AllTreeRules } from './left-out.js'
import {
  captureAll, compareAll, type DependencyJob, type FoundDependencies,
} from './hash-dependencies.js'
import { isLarger } from './measure-tree.js'
import { rawPath } from './raw-paths.js'
import { removeTree } from './remove-tree.js'
import type { Batch } from './tree-batches.js'
import { TreeCopy, type CopyJob } from './tree-copy.js'
import { walkFolder, WalkedFolder, WorkStopped } from './walk-folder.js'

/** What is done at once, in whatever thread. */
export type FolderTask =
  | { readonly t: 'copy'; readonly folder: string; readonly job: CopyJob }
  /** Waits for what still writes into the folder. */
  | { readonly t: 'remove'; readonly folder: string }
  /** The other arguments of `isLarger`. */
  | {
      readonly t: 'measure'
      readonly folder: string
      readonly args: readonly [number, readonly string[], readonly string[]]
    }
  | { readonly t: 'touched'; readonly folder: string; readonly since: FileSystemTime }
  | {
      readonly t: 'dependencies'
      readonly folder: string
      readonly job: DependencyJob
      /** What they are compared with; null: all are hashed. */
      readonly before: FoundDependencies | null
    }

/** What is done by a thread that remembers the folder: see `folder-tracker.ts`. */
export type TrackingTask =
  | {
      readonly t: 'look'
      readonly tracked: number
      readonly folder: string
      readonly rules: AllTreeRules
      readonly storeContents: boolean
      /** False: nothing is sent, but what was found. */
      readonly sends: boolean
      readonly previous: string | null
    }
  | { readonly t: 'forget'; readonly tracked: number }

/** What a task asks: to store a batch, or what a checkpoint did not store. */
export type Question =
  | { readonly t: 'store'; readonly batch: Batch }
  | { readonly t: 'not stored'; readonly checkpointId: string }

/** Path and hash in turns for the second question; null once the task is aborted. */
export type Answer = readonly string[] | null

export type ToFolderThread =
  | {
      readonly job: number
      readonly task: FolderTask | TrackingTask
      /** Becomes 1 when the task is to stop. */
      readonly aborted: Int32Array
    }
  | { readonly job: number; readonly question: number; readonly answer: Answer }

export type FromFolderThread =
  | { readonly job: number; readonly question: number; readonly asks: Question }
  | { readonly job: number; readonly report: TaskReport }

/** What a task reports. */
export type TaskReport<Result = unknown> =
  | { readonly result: Result }
  | { readonly failed: 'aborted' | 'too large' }
  | { readonly error: string; readonly code: string | undefined }

/** Entries, and reads of 128 KiB, after which a task is left to a thread. */
const SMALL_STEPS = 64
/** Bytes of all files of a folder that is copied without one. */
const SMALL_BYTES = 256 * 1024

/** Does a task; its files are closed afterwards. */
export function performTask(task: FolderTask, isAborted: () => boolean): TaskReport {
  try {
    return { result: resultOf(task, isAborted) }
  } catch (error) {
    return failureOf(error)
  }
}

/** The same without a thread, if there is little to do; else null. */
export function performSmall(task: FolderTask): TaskReport | null {
  if (task.t === 'copy') return isSmall(task.folder) ? performTask(task, () => false) : null
  let steps = 0
  const isAborted = (): boolean => ++steps > SMALL_STEPS
  if (task.t !== 'remove') {
    const report = performTask(task, isAborted)
    return 'failed' in report && report.failed === 'aborted' ? null : report
  }
  try {
    removeTree(task.folder, isAborted, 1)
    return { result: null }
  } catch {
    return null // a thread may wait for what still writes into the folder
  }
}

export function failureOf(error: unknown): TaskReport {
  if (error instanceof WorkStopped) return { failed: error.why }
  return { error: describeError(error), code: systemCode(error) }
}

function resultOf(task: FolderTask, isAborted: () => boolean): unknown {
  switch (task.t) {
    case 'copy':
      return new TreeCopy(task.job, isAborted).run()
    case 'measure':
      if (isLarger(task.folder, ...task.args, isAborted)) throw new WorkStopped('too large')
      return null
    case 'remove':
      removeTree(task.folder, isAborted)
      return null
    case 'touched':
      return onOwnFilesNow(() => findTouched(task.folder, task.since, isAborted))
    case 'dependencies':
      return task.before === null
        ? captureAll(task.job, isAborted)
        : compareAll(task.job, task.before, isAborted)
  }
}

/** True for a folder of few and small files. */
function isSmall(folder: string): boolean {
  let bytes = 0
  try {
    const top = new WalkedFolder(null, rawPath(folder))
    for (const found of walkFolder(top, { entries: SMALL_STEPS, names: SMALL_STEPS + 1 })) {
      if (found.kind === 'folder') found.enter()
      else bytes += found.stat()?.size ?? 0
      if (bytes > SMALL_BYTES) return false
    }
    return true
  } catch {
    return false // it is larger, or a thread tells what is wrong with it
  }
}
