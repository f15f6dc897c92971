import type { RunStore } from '../store.js'
import { isInside } from '../workspace/paths.js'

/** Heads that are read at once from a store that has no index of folders. */
const PAGE = 1_000

/** As `RunStore.hasForeignRun`, for any store. */
export async function hasForeignRun(
  store: RunStore,
  folder: string,
  tenant: string | null,
): Promise<boolean> {
  if (store.hasForeignRun !== undefined) return await store.hasForeignRun(folder, tenant)
  // Hosts without tenants should not pay for them.
  if (tenant === null) return false
  let cursor: string | undefined
  do {
    const { heads, next } = await store.list({ limit: PAGE, cursor })
    for (const { details, owner } of heads) {
      if (owner.tenant === tenant || details.cwd === '') continue
      if (isInside(details.cwd, folder) || isInside(folder, details.cwd)) return true
    }
    cursor = next ?? undefined
  } while (cursor !== undefined)
  return false
}
