import { headsOf } from '../log/heads-of.js'
import type { RunStore } from '../store.js'
import { isInside } from '../workspace/paths.js'

/** As `RunStore.hasForeignRun`, for any store. */
export async function hasForeignRun(
  store: RunStore,
  folder: string,
  tenant: string | null,
): Promise<boolean> {
  if (store.hasForeignRun !== undefined) return await store.hasForeignRun(folder, tenant)
  // Hosts without tenants should not pay for them.
  if (tenant === null) return false
  for await (const { details, owner } of headsOf(store)) {
    if (owner.tenant === tenant || details.cwd === '') continue
    if (isInside(details.cwd, folder) || isInside(folder, details.cwd)) return true
  }
  return false
}
