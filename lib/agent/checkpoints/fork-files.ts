import { inSlices } from '../../internal/time.js'
import { CheckpointError } from '../errors.js'
import type { ForkFiles } from '../request/fork-files.js'
import { manifestOf } from '../workspace/tracked-folder.js'
import { comparePaths, netChanges } from '../workspace/net-changes.js'
import { readTree } from '../workspace/read-tree.js'
import type { CheckpointSettings } from './settings.js'
import { useTree } from './use-tree.js'

/** The files of checkpoints with which forks begin; null for an engine without checkpoints. */
export function forkFiles(settings: CheckpointSettings | null): ForkFiles | null {
  if (settings === null) return null
  const { rules, use } = settings
  return {
    keeping: (work) =>
      use.capturing((objects) =>
        work(async (checkpointId) => {
          // Of a checkpoint that is gone as a whole nothing is damaged.
          if (!(await objects.has([checkpointId])).has(checkpointId)) {
            const problem = `checkpoint ${checkpointId} is not stored any more`
            throw new CheckpointError('not_kept', problem)
          }
          await useTree(objects, checkpointId)
        }),
      ),
    differences: async (folder, checkpointId) => {
      const before = await readTree(use.objects, checkpointId)
      const changes = await inSlices(netChanges(before, await manifestOf(folder, rules)))
      const paths = changes.flatMap(({ path, oldPath }) =>
        oldPath === null ? [path] : [path, oldPath],
      )
      return paths.sort(comparePaths)
    },
  }
}
