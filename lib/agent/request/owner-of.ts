import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { isStorable, MUST_BE_STORABLE } from '../../internal/text.js'
import type { WorkspaceCaller } from '../checkpoint.js'
import type { RunOwner } from '../events.js'

const CALLER: OptionKinds<{ owner: RunOwner; signal?: AbortSignal }> = {
  owner: 'object! the principal whose runs it may see', signal: 'object',
}
const OWNER: OptionKinds<RunOwner> = {
  id: 'string|null! the principal, or null for one without an id',
  tenant: 'string|null! its tenant, or null for the one of all who have none',
}

/**
 * Whose runs a caller may see; undefined for the host itself, which may see all. A caller without a
 * valid owner would be taken for the host, and an owner without `tenant` for one without a tenant.
 *
 * @throws TypeError when it is no caller.
 */
export function ownerOf(caller: WorkspaceCaller | undefined): RunOwner | undefined {
  if (caller === undefined) return undefined
  checkOptions(caller, CALLER, 'caller')
  checkOptions(caller.owner, OWNER, 'caller.owner')
  for (const field of ['id', 'tenant'] as const) {
    if (isStorable(caller.owner[field] ?? '')) continue
    throw new TypeError(`caller.owner.${field} ${MUST_BE_STORABLE}`)
  }
  return caller.owner
}
