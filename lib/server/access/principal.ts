import type { Caller } from '../../agent/index.js'
import { isStorable, nearestName } from '../../internal/text.js'
import { describeValue } from '../../internal/options.js'
import type { ServiceConfig } from '../config.js'
import { ProblemError } from '../errors.js'
import type { Principal } from './auth.js'

/** The engine's caller when the host has no `authorize`. */
const ANONYMOUS: Caller = { owner: { id: null, tenant: null } }

/** The engine's caller for a principal; null is the caller of a host without `authorize`. */
export function callerFor(principal: Principal | null): Caller {
  if (principal === null) return ANONYMOUS
  return { owner: { id: principal.id, tenant: principal.tenant ?? null } }
}

/** Whether a caller may know of all tenants, and hence of the store itself. */
export function seesAll({ authorize }: ServiceConfig, principal: Principal | null): boolean {
  if (principal === null) return authorize === null
  return (principal.tenant ?? null) === null
}

/** The key under which the limiter counts a principal. */
export function accountOf(principal: Principal | null): string {
  return principal === null ? '' : JSON.stringify([principal.tenant ?? null, principal.id])
}

/**
 * The result of `authorize`, checked: whatever is neither a principal nor null is a mistake of the
 * host, which must not open the service. Read once, so that it stays what was checked.
 *
 * @throws `ProblemError` 401 when it is null; TypeError when it is no principal
 */
export function authorized(result: unknown): Principal {
  if (result === null) throw unauthorized()
  if (typeof result !== 'object' || Array.isArray(result)) throw noPrincipal(describeValue(result))
  const { id, tenant } = result as { readonly [K in keyof Principal]: unknown }
  if (typeof id !== 'string') throw noPrincipal(`the id ${describeValue(id)}`)
  if (id === '') throw noPrincipal('an empty id')
  if (tenant !== undefined && tenant !== null && typeof tenant !== 'string') {
    throw noPrincipal(`the tenant ${describeValue(tenant)}`)
  }
  if (!('tenant' in result)) refuseMisspelt(result)
  for (const [name, text] of Object.entries({ id, tenant })) {
    if (text && !isStorable(text)) throw noPrincipal(`NUL or half of a character in the ${name}`)
  }
  return { id, tenant: tenant ?? null }
}

/** A host's own user object may have other fields, but none that was meant to be its tenant. */
function refuseMisspelt(principal: object): void {
  for (const name in principal) {
    if (nearestName(name, ['tenant']) === undefined) continue
    throw noPrincipal(`${name}, which is not tenant (add tenant: null if there is none)`)
  }
}

function noPrincipal(got: string): TypeError {
  return new TypeError(`authorize must return {id, tenant?}, both strings, or null; got ${got}`)
}

function unauthorized(): ProblemError {
  const detail = 'a valid key is required: Authorization: Bearer <key>'
  return new ProblemError(401, 'unauthorized', detail, {
    headers: { 'WWW-Authenticate': 'Bearer realm="runwright"' },
  })
}
