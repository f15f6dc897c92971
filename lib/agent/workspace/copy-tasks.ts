/** What `copy.ts` has done in a worker of its own, which does one thing, reports it, and ends. */
import type { CopyReport, CopyTask } from './copy-job.js'
import { isLarger } from './measure-tree.js'
import { codeOf } from './paths.js'
import { removeTree } from './remove-tree.js'
import { CopyStopped, TreeCopy } from './tree-copy.js'

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
