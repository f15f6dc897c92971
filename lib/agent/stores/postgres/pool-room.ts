import { StoreError } from '../../errors.js'
import type { PgPool } from './pg-types.js'

/** Connections that open stores keep, of each pool. */
const kept = new WeakMap<PgPool, number>()

/**
 * Reserves the connection that a store keeps while it is open: the one that listens and carries the
 * heartbeat, of `listen` or else of `pool`. Stores on one pool must leave one for statements, or
 * each statement would wait for a connection that never becomes free.
 *
 * @returns a function that ends the reservation.
 * @throws {@link StoreError} when a pool is too small.
 */
export function reserveConnections(pool: PgPool, listen: PgPool | null): () => void {
  const keeping = listen ?? pool
  assertRoom('pool', pool, (kept.get(pool) ?? 0) + (keeping === pool ? 2 : 1))
  if (keeping !== pool) assertRoom('listen', keeping, (kept.get(keeping) ?? 0) + 1)
  kept.set(keeping, (kept.get(keeping) ?? 0) + 1)
  return () => void kept.set(keeping, (kept.get(keeping) ?? 1) - 1)
}

function assertRoom(name: string, { options }: PgPool, needed: number): void {
  const max = options?.max ?? Infinity
  if (max >= needed) return
  throw new StoreError(
    'ERR_AGENT_STORE',
    `max of ${name} is ${max}, but the stores that use it need ${needed} connections: each keeps ` +
      'one to listen and for its heartbeat, and statements need another; ' +
      `set max to ${needed} or more (4 are enough for one store)`,
  )
}
