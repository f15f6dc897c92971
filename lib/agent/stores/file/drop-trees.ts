import type { Catalog, StoredRun } from './catalog.js'
import type { RunWriter } from './run-writer.js'

/** Collaborators of {@link dropTrees}. */
export interface DropParts {
  readonly catalog: Catalog
  readonly writer: RunWriter
  /** Resolves once the deletion is durable. */
  readonly deleteRun: (runId: string) => Promise<void>
  readonly onFailure: (error: unknown) => void
}

/**
 * Drops trees of runs, each of which ends with its root, but for those of which a run is written or
 * cannot be used.
 */
export function dropTrees(trees: readonly (readonly StoredRun[])[], parts: DropParts): void {
  for (const tree of trees) {
    if (tree.every((run) => isAtRest(run, parts))) dropTree(tree, parts).catch(parts.onFailure)
  }
}

/** The root comes last: what a crash leaves of the tree, the next sweep drops. */
async function dropTree(tree: readonly StoredRun[], parts: DropParts): Promise<void> {
  const root = tree.at(-1) as StoredRun
  if (tree.length > 1) {
    await Promise.all(tree.slice(0, -1).map(({ runId }) => parts.deleteRun(runId)))
    if (root.operates || !isAtRest(root, parts)) return
  }
  await parts.deleteRun(root.runId)
}

function isAtRest(run: StoredRun, { catalog, writer }: DropParts): boolean {
  return !writer.isBusy(run) && !catalog.quarantined.has(run.runId)
}
