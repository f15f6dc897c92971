import { inSlices } from '../../internal/time.js'
import type { ObjectStore } from '../object-store.js'
import { countChanges, type CountedChanges } from '../workspace/render-changes.js'
import { netChanges, type TreeChange } from '../workspace/net-changes.js'
import { readContent } from '../workspace/read-tree.js'
import { readDifference } from '../workspace/load-tree-diff.js'

/**
 * The net change between two checkpoints, in numbers.
 *
 * @throws as `readTree` does.
 */
export async function compareTrees(
  objects: ObjectStore,
  from: string,
  to: string,
): Promise<CountedChanges> {
  const changes = from === to ? [] : await treeChanges(objects, from, to)
  return await countChanges(changes, (entry) => readContent(objects, entry))
}

async function treeChanges(
  objects: ObjectStore,
  from: string,
  to: string,
): Promise<readonly TreeChange[]> {
  const { before, after } = await readDifference(objects, from, to)
  return await inSlices(netChanges(before, after))
}
