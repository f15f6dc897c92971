import { inSlices } from '../../internal/time.js'
import { CheckpointError } from '../errors.js'
import type { ForkFiles } from '../request/fork-files.js'
import { manifestOf } from '../workspace/tracked-folder.js'
import { comparePaths, netChanges } from '../workspace/net-changes.js'
import { readTree, objectsOf } from '../workspace/read-tree.js'
import type { CheckpointSettings } from './settings.js'
import type { ObjectStore } from '../object-store.js'
import { SeenHashes } from './hash-set.js'

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

const BATCH = 500

/**
 * Marks the objects of a checkpoint of another run as used: they stay when that run is deleted.
 * Call it in `ObjectUse.capturing`, which waits until the record that refers to them is durable.
 *
 * @throws {@link CheckpointError} with `not_kept` when a part of it is not there any more;
 * {@link StoreError} when a folder of it is damaged or gone.
 */
export async function useTree(objects: ObjectStore, checkpointId: string): Promise<void> {
  let batch: string[] = []
  const use = async (): Promise<void> => {
    const there = await objects.has(batch)
    if (there.size < batch.length) {
      const problem = `checkpoint ${checkpointId} is not stored any more: its run was deleted`
      throw new CheckpointError('not_kept', problem)
    }
    batch = []
  }
  for await (const hash of objectsOf(objects, checkpointId, new SeenHashes())) {
    if (batch.push(hash) === BATCH) await use()
  }
  await use()
}
