/** What `copy.ts` and others have done: see `tree-task.ts`. */
import { describeError } from '../../internal/errors.js'
import { inThreadOnOwnFiles } from '../exhaustion.js'
import { findTouched } from './find-touched.js'
import { captureAll, compareAll } from './look-at-dependencies.js'
import type { CopyReport, CopyTask } from './copy-job.js'
import { isLarger } from './measure-tree.js'
import { codeOf } from './paths.js'
import { removeTree } from './remove-tree.js'
import { TreeCopy } from './tree-copy.js'
import { WorkStopped } from './walk-folder.js'

export function performCopyTask(task: CopyTask): CopyReport {
  const isAborted = (): boolean => 'aborted' in task && task.aborted[0] === 1
  try {
    switch (task.t) {
      case 'copy':
        return { result: new TreeCopy(task.job, isAborted).run() }
      case 'measure':
        return isLarger(...task.args) ? { failed: 'too large' } : { result: null }
      case 'remove':
        removeTree(task.folder)
        return { result: null }
      case 'touched':
        return {
          result: inThreadOnOwnFiles(() => findTouched(task.folder, task.since, isAborted)),
        }
      case 'dependencies':
        return {
          result: task.before === null
            ? captureAll(task.job, isAborted)
            : compareAll(task.job, task.before, isAborted),
        }
    }
  } catch (error) {
    if (error instanceof WorkStopped) return { failed: error.why }
    return { error: describeError(error), code: codeOf(error) }
  }
}
