/** What `copy.ts` has done in a worker of its own, which does one thing, reports it, and ends. */
import { isLarger } from './measure-tree.js'
import { codeOf } from './paths.js'
import { removeTree } from './remove-tree.js'
import { CopyStopped, TreeCopy, type CopyJob, type CopyResult } from './tree-copy.js'

/** What is to be done; `aborted` becomes 1 when it is to stop. */
export type CopyTask =
  | { readonly t: 'copy'; readonly job: CopyJob; readonly aborted: Int32Array }
  | { readonly t: 'remove'; readonly folder: string }
  | { readonly t: 'measure'; readonly args: Parameters<typeof isLarger> }

/** What it reports. */
export type CopyReport =
  | { readonly result: CopyResult | null }
  | { readonly failed: CopyStopped['why'] }
  | { readonly error: string; readonly code: string | undefined }

export function performCopyTask(task: CopyTask): CopyReport {
  try {
    switch (task.t) {
      case 'copy':
        return { result: new TreeCopy(task.job, () => task.aborted[0] === 1).run() }
      case 'measure':
        return isLarger(...task.args) ? { failed: 'too large' } : { result: null }
      case 'remove':
        removeTree(task.folder)
        return { result: null }
    }
  } catch (error) {
    if (error instanceof CopyStopped) return { failed: error.why }
    return { error: error instanceof Error ? error.message : String(error), code: codeOf(error) }
  }
}
