import type { ContentOf } from '../../../lib/agent/tree.js'
import { atOnce } from '../../../lib/internal/time.js'
import {
  describeChanges, type DescribedChange,
} from '../../../lib/agent/workspace/render-changes.js'
import { netChanges, type TreeChange } from '../../../lib/agent/workspace/net-changes.js'
import { contentsOf, treeOf, type ModelFile } from '../../helpers/tree-model.js'

type Files = Readonly<Record<string, ModelFile>>

export function both(
  before: Files,
  after: Files,
): { readonly changes: readonly TreeChange[]; readonly contentOf: ContentOf } {
  const [a, b] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  return { changes: atOnce(netChanges(treeOf(a), treeOf(b))), contentOf: contentsOf(a, b) }
}

export async function described(before: Files, after: Files): Promise<readonly DescribedChange[]> {
  const { changes, contentOf } = both(before, after)
  return (await describeChanges(changes, contentOf)).changes
}

export const lines = (count: number, word = ''): string =>
  Array.from({ length: count }, (_, i) => `${word}${i}\n`).join('')
