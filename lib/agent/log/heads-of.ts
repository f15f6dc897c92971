import { PageCheck } from '../../internal/web.js'
import { nextTurn } from '../../internal/time.js'
import { StoreError } from '../errors.js'
import type { RunHead } from '../run-details.js'
import type { RunQuery, RunStore } from '../store.js'

/** Few, because the heads of a page are parsed in one turn of the event loop. */
const PAGE = 100

/**
 * The heads of all runs that meet the conditions, newest first, those that cannot be read included.
 * The event loop has a turn between two pages.
 *
 * @throws {@link StoreError} for a list without an end; the signal's reason once it aborts.
 */
export async function* headsOf(
  store: Pick<RunStore, 'list'>,
  query: Omit<RunQuery, 'cursor' | 'limit'> = {},
  signal?: AbortSignal,
): AsyncGenerator<RunHead, void> {
  const check = new PageCheck()
  for (let cursor: string | undefined; ; await nextTurn()) {
    signal?.throwIfAborted()
    const { heads, next } = await store.list({ ...query, limit: PAGE, cursor })
    yield* heads
    if (next === null) return
    const problem = check.problem(next, heads.length)
    if (problem !== null) throw new StoreError('ERR_AGENT_STORE', `the list of runs ${problem}`)
    cursor = next
  }
}
