import type { Caller } from '../../agent/index.js'
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

/** The result of `authorize`, checked. @throws `ProblemError` 401 when it is null */
export function authorized(principal: Principal | null): Principal {
  if (principal !== null) return principal
  const detail = 'a valid key is required: Authorization: Bearer <key>'
  throw new ProblemError(401, 'unauthorized', detail, {
    headers: { 'WWW-Authenticate': 'Bearer realm="runwright"' },
  })
}
