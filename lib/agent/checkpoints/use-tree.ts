import { CheckpointError } from '../errors.js'
import type { ObjectStore } from '../object-store.js'
import { objectsOf } from '../workspace/read-tree.js'
import { SeenHashes } from './hash-set.js'

const BATCH = 500

/**
 * Uses a whole checkpoint of another run anew, so that it stays when that run is deleted: within
 * `ObjectUse.capturing`, which waits until the record that refers to it is durable.
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
