import { StoreError, UnknownRunError } from '../errors.js'
import type { RunOwner } from '../events.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'

/** Codes for a run that cannot be read. */
const UNREADABLE: readonly string[] = ['ERR_AGENT_STORE_CORRUPT', 'ERR_AGENT_STORE_VERSION']
/** Runs that may mention the id of another and be newer than it. */
const MENTIONS = 10_000

/**
 * The head of a run that a caller may see; without `owner`, any run.
 *
 * @throws {@link UnknownRunError}, for a run of another tenant as for none, whatever its state;
 * {@link StoreError}.
 */
export async function visibleHead(
  store: RunStore,
  runId: string,
  owner: RunOwner | undefined,
): Promise<RunHead> {
  let head: RunHead | null
  try {
    head = await store.head(runId)
  } catch (error) {
    const tenant = owner?.tenant ?? null
    const isUnreadable = error instanceof StoreError && UNREADABLE.includes(error.code)
    if (!isUnreadable || tenant === null) throw error
    const { heads } = await store.list({ tenant, search: runId, limit: MENTIONS })
    if (heads.some(({ details }) => details.run_id === runId)) throw error
    head = null
  }
  if (head !== null && (owner === undefined || owner.tenant === head.owner.tenant)) return head
  throw new UnknownRunError(runId)
}
