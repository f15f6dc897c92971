import { raceAbort } from '../../internal/time.js'
import type { ObjectStore } from '../object-store.js'

/** The same store, of which each call rejects with the signal's reason when that aborts first. */
export function boundedObjects(objects: ObjectStore, signal: AbortSignal): ObjectStore {
  const bounded = <T>(work: () => Promise<T>): Promise<T> =>
    raceAbort(Promise.resolve().then(work), signal)
  const { claimSweep } = objects
  return {
    exclusive: objects.exclusive,
    put: (blobs) => bounded(() => objects.put(blobs)),
    get: (hash) => bounded(() => objects.get(hash)),
    has: (hashes) => bounded(() => objects.has(hashes)),
    list: (after, limit) => bounded(() => objects.list(after, limit)),
    delete: (hashes, unusedMs) => bounded(() => objects.delete(hashes, unusedMs)),
    ...(claimSweep && { claimSweep: (ms) => bounded(() => claimSweep.call(objects, ms)) }),
  }
}
