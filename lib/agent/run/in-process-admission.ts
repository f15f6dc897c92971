import { FolderIndex } from '../../internal/folder-index.js'
import { exceededBound, type QueueUse } from '../../internal/queues.js'
import { foldHead } from '../log/head.js'
import { hasForeignRun } from '../request/foreign-run.js'
import { repeatedRun } from '../request/idempotency.js'
import type { RunHead } from '../run-details.js'
import { keyOf, type Admission, type Admitted } from '../shared-store.js'
import { folderKey } from './queue-keys.js'
import type { RunServices } from './services.js'

/** The unfinished runs, as far as an admission depends on them. */
export interface Unended {
  /** The runs that wait for their first slot: all, and those of a tenant. */
  waiting(tenant: string | null): QueueUse
  /** Settles when the runs of earlier processes are known. */
  readonly listed: () => Promise<void>
  /** Aborts when no run may begin any more. */
  readonly stopped: AbortSignal
  /** Called before the first record of a run is stored; the returned function takes that back. */
  begins(head: RunHead): () => void
}

/** Admits new runs in a store that belongs to this process alone. */
export class InProcessAdmission {
  readonly #services: Pick<RunServices, 'store'>
  readonly #unended: Unended
  /** Runs being created, by owner and key: a request with the same key waits for the first. */
  readonly #creating = new Map<string, Promise<unknown>>()
  /** Tenants of the runs that are being created, in their folders. */
  readonly #beginning = new FolderIndex<string | null>()
  /** Folders of the runs that have not ended; with the policy `reject` only. */
  readonly #folders = new Map<string, string>()
  readonly #users = new FolderIndex<string>()

  constructor(services: Pick<RunServices, 'store'>, unended: Unended) {
    this.#services = services
    this.#unended = unended
  }

  /** As `SharedRuns.admit`. */
  async admit(admission: Admission): Promise<Admitted> {
    const owned = keyOf(admission)
    if (owned === null) return await this.#admit(admission)
    const lock = JSON.stringify([owned.owner.tenant, owned.owner.id, owned.key])
    const before = this.#creating.get(lock) ?? Promise.resolve()
    const creation = before.then(async (): Promise<Admitted> => {
      const { created, keysSince } = admission
      const first = await this.#services.store.findByKey(owned.owner, owned.key, keysSince)
      const head = repeatedRun(first, created.private?.idempotency?.body_hash)
      return head === null ? await this.#admit(admission) : { outcome: 'repeated', head }
    })
    const settled = creation.catch(() => undefined).finally(() => {
      if (this.#creating.get(lock) === settled) this.#creating.delete(lock)
    })
    this.#creating.set(lock, settled)
    return await creation
  }

  /** Notes the folder of a run that has not ended. */
  addUser(runId: string, folder: string): void {
    if (this.#folders.has(runId)) return
    this.#folders.set(runId, folder)
    this.#users.add(runId, folder)
  }

  removeUser(runId: string): void {
    const folder = this.#folders.get(runId)
    if (folder !== undefined) this.#users.remove(runId, folder)
    this.#folders.delete(runId)
  }

  async #admit(admission: Admission): Promise<Admitted> {
    const { cwd } = admission.created.payload
    const tenant = admission.created.private?.owner.tenant ?? null
    // Of two that begin at once, the later one sees the other here or in the store.
    if (this.#beginning.find(cwd, tenant) !== undefined) return { outcome: 'foreign_folder' }
    this.#beginning.add(tenant, cwd)
    try {
      const isForeign = await hasForeignRun(this.#services.store, cwd, tenant)
      return isForeign ? { outcome: 'foreign_folder' } : await this.#begin(admission)
    } finally {
      this.#beginning.remove(tenant, cwd)
    }
  }

  /** Begins a run in a folder that no other tenant uses. */
  async #begin({ created, cwdPolicy, maxQueued }: Admission): Promise<Admitted> {
    const { stopped } = this.#unended
    if (cwdPolicy === 'reject') await this.#unended.listed()
    // No `await` between these checks and `begins()`: they hold when the run is counted.
    if (created.payload.role === undefined) stopped.throwIfAborted()
    const head = foldHead(null, created)
    const { run_id: runId } = head.details
    const folder = folderKey(head.details)
    const user = cwdPolicy === 'reject' ? this.#users.find(folder) : undefined
    if (user !== undefined) return { outcome: 'cwd_busy', runId: user }
    const { tenant } = head.owner
    const isBounded = maxQueued !== Infinity
    const limit = isBounded
      ? exceededBound(this.#unended.waiting(tenant), tenant, maxQueued)
      : null
    if (limit !== null) return { outcome: 'queue_full', limit }
    const takeBack = this.#unended.begins(head)
    if (cwdPolicy === 'reject') this.addUser(runId, folder)
    try {
      await this.#services.store.append(runId, [created])
    } catch (error) {
      takeBack()
      this.removeUser(runId)
      throw error
    }
    return { outcome: 'admitted' }
  }
}
