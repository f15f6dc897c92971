import type { FilesAtStart } from '../check-files.js'
import type { ObjectStore } from '../object-store.js'
import type { Tree, TreeEntry } from '../tree.js'
import { applySteps } from '../workspace/apply.js'
import { outsideTree } from '../workspace/left-out.js'
import { readContent } from '../workspace/read-tree.js'

/** The files of the checkpoint of a run's start; none is known where there is none. */
export class StartFiles implements FilesAtStart {
  readonly #objects: ObjectStore
  readonly #read: () => Promise<Tree | null>
  #tree: Promise<Tree | null> | undefined

  /** @param read is called when the first file is asked for */
  constructor(objects: ObjectStore, read: () => Promise<Tree | null>) {
    this.#objects = objects
    this.#read = read
  }

  async hashOf(path: string): Promise<string | null | undefined> {
    const tree = await this.#start()
    if (tree === null) return undefined
    const entry = tree.entries.get(path)
    if (entry === undefined) return outsideTree(tree)(path) ? undefined : null
    // A link is compared by where it leads, not by its target's text.
    return entry.kind === 'link' ? undefined : entry.sha256
  }

  async stored(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const tree = await this.#start()
    const hashes = new Map<string, string>()
    for (const path of paths) {
      const { kind, sha256, stored } = tree?.entries.get(path) ?? {}
      if (kind === 'file' && sha256 !== undefined && stored !== false) hashes.set(path, sha256)
    }
    return hashes
  }

  async restore(folder: string, paths: readonly string[]): Promise<readonly string[]> {
    const tree = await this.#start()
    const steps = paths.flatMap((path) => {
      const after = tree?.entries.get(path)
      return after === undefined ? [] : [{ path, before: null, after }]
    })
    const contentOf = async (entry: TreeEntry): Promise<Uint8Array> =>
      await readContent(this.#objects, entry)
    return (await applySteps(folder, steps, contentOf)).done
  }

  async #start(): Promise<Tree | null> {
    this.#tree ??= this.#read().catch((error: unknown) => {
      this.#tree = undefined
      throw error
    })
    return await this.#tree
  }
}
