import { inSlices } from '../../internal/next-turn.js'
import type { ObjectStore } from '../object-store.js'
import { countChanges, type CountedChanges } from '../workspace/describe-changes.js'
import { netChanges } from '../workspace/net-changes.js'
import { readContent } from '../workspace/read-tree.js'
import { readDifference } from '../workspace/tree-difference.js'

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
  const { before, after } = await readDifference(objects, from, to)
  const changes = await inSlices(netChanges(before, after))
  return await countChanges(changes, (entry) => readContent(objects, entry))
}
