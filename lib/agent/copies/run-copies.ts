/**
 * The private copies of workspaces that tools work in; see `workspace-copy.ts` in `agent`.
 *
 * 1. A copy is made when it is first opened, and kept for later calls of the run.
 * 2. The first `open` of a call compares the workspace with the state that was copied: once it has
 *    changed, all copies of the run are removed.
 * 3. The slots are shared by all runs of an engine, in turn.
 *
 * @module
 */
import os from 'node:os'
import { FairSlots } from '../../internal/queues.js'
import type { Executor, IsolatedCopy } from '../executor.js'
import { MAX_COPIES, type WorkspaceCopies } from '../workspace-copy.js'
import { folderState, isSameState, type FolderState } from './folder-state.js'
import { OpenCopy, type CopiedPlace, type CopyCall } from './open-copy.js'

/** Slots, at most. */
const MAX_SLOTS = 8
const NAME = /^[a-z0-9-]{1,32}$/

/** Where copies are made; see `IsolatedFolders`. */
export interface CopyFolders {
  create(name: string, cwd: string, options: {
    readonly mounts: boolean
    readonly mounted: IsolatedCopy['readOnly']
    readonly sealed: true
    readonly signal: AbortSignal
  }): Promise<IsolatedCopy>
  removeSoon(name: string): Promise<void>
}

/** The parts of an engine that copies use. */
export interface CopiesSettings {
  /** Finds the executor of commands in copies. */
  readonly executor: () => Promise<Executor>
  readonly sealedFolders: { open(): Promise<CopyFolders> }
}

/** Gives the copies of a run. */
export type CopiesFor = (runId: string, claimed: (executor: Executor) => Executor) => RunCopies

/** See the comment of this file. */
export function copiesFor(settings: CopiesSettings): CopiesFor {
  const slots = new FairSlots(Math.min(os.availableParallelism(), MAX_SLOTS))
  return (runId, claimed) => new RunCopies(runId, settings, slots, claimed)
}

/** The copies of one run. */
export class RunCopies {
  readonly #runId: string
  readonly #settings: CopiesSettings
  readonly #slots: FairSlots
  readonly #claimed: (executor: Executor) => Executor
  readonly #copies = new Map<string, Promise<OpenCopy>>()
  #state: FolderState | null = null
  #version = 0
  #made = 0
  #isClosed = false

  constructor(
    runId: string,
    settings: CopiesSettings,
    slots: FairSlots,
    claimed: (executor: Executor) => Executor,
  ) {
    this.#runId = runId
    this.#settings = settings
    this.#slots = slots
    this.#claimed = claimed
  }

  /** The copies for one call. */
  ofCall(call: CopyCall): WorkspaceCopies {
    let current: Promise<CopiedPlace> | undefined
    return {
      slots: this.#slots.slots,
      open: async (name) => {
        if (typeof name !== 'string' || !NAME.test(name)) {
          throw new TypeError('the name of a copy must be 1 to 32 lower-case letters, digits or -')
        }
        current ??= this.#refresh(call)
        const copy = await this.#open(name, await current, call.stop.signal)
        return copy.ofCall(call)
      },
    }
  }

  /** Removes all copies; none can be opened any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#removeAll()
  }

  /** Removes copies that are not of the workspace as it is. */
  async #refresh({ place }: CopyCall): Promise<CopiedPlace> {
    const found = await place()
    const state = await folderState(found.cwd)
    if (isSameState(state, this.#state)) return found
    await this.#removeAll()
    this.#state = state
    this.#version += 1
    return found
  }

  async #open(name: string, place: CopiedPlace, signal: AbortSignal): Promise<OpenCopy> {
    const known = this.#copies.get(name)
    if (known !== undefined) return await known
    if (this.#copies.size >= MAX_COPIES) {
      throw new TypeError(`at most ${MAX_COPIES} copies can be open: remove() one first`)
    }
    const making = this.#make(name, place, signal)
    this.#copies.set(name, making)
    making.catch(() => this.#copies.delete(name))
    return await making
  }

  async #make(name: string, place: CopiedPlace, signal: AbortSignal): Promise<OpenCopy> {
    const { cwd, isolated } = place
    const folder = `try-${this.#made++}-${this.#runId}`
    const [folders, found] = await Promise.all([
      this.#settings.sealedFolders.open(), this.#settings.executor(),
    ])
    if (this.#isClosed) throw new Error('the run is over')
    const executor = this.#claimed(found)
    const mounts = (await executor.mountsFolders?.()) ?? false
    const mounted = mounts ? (isolated?.readOnly ?? []) : []
    const copy = await folders.create(folder, cwd, { mounts, mounted, sealed: true, signal })
    let isRemoved = false
    // A copy that can't be removed now is removed by a sweep.
    const discard = async (): Promise<void> => {
      await folders.removeSoon(folder).catch(() => undefined)
    }
    try {
      return await OpenCopy.open({
        runId: this.#runId, copy, executor, slots: this.#slots, version: this.#version,
        remove: async () => {
          // By now, another copy may have the name.
          if (isRemoved) return
          isRemoved = true
          this.#copies.delete(name)
          await discard()
        },
      })
    } catch (error) {
      await discard()
      throw error
    }
  }

  async #removeAll(): Promise<void> {
    const open = await Promise.allSettled(this.#copies.values())
    await Promise.all(open.map((one) => (one.status === 'fulfilled' ? one.value.remove() : null)))
    this.#copies.clear()
  }
}
