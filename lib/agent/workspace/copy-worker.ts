/** The worker that copies and removes folders: does one thing, reports it, and ends. */
import { parentPort, workerData } from 'node:worker_threads'
import type { WorkerReport, WorkerTask } from './copy-job.js'
import { isLarger } from './measure-tree.js'
import { codeOf } from './paths.js'
import { removeTree } from './remove-tree.js'
import { Aborted, TooLarge, TreeCopy } from './tree-copy.js'

const report: WorkerReport = perform(workerData as WorkerTask)
parentPort?.postMessage(report)

function perform(task: WorkerTask): WorkerReport {
  try {
    if (task.kind === 'copy') {
      return { result: new TreeCopy(task.job, () => task.aborted[0] === 1).run() }
    }
    if (task.kind === 'measure') {
      const { folder, maxBytes, closed, skipped } = task
      if (isLarger(folder, maxBytes, closed, skipped)) return { failed: 'too large' }
      return { result: null }
    }
    removeTree(task.folder)
    return { result: null }
  } catch (error) {
    if (error instanceof Aborted) return { failed: 'aborted' }
    if (error instanceof TooLarge) return { failed: 'too large' }
    return { error: error instanceof Error ? error.message : String(error), code: codeOf(error) }
  }
}
