import { listMembers } from '../field-values.js'
import { Headers } from '../headers.js'
import { CacheDirectives } from './directives.js'
import type { CachedResponse } from './store.js'

/**
 * Fields that are not stored: those of one connection (RFC 9111, section 3.1), and cookies, which
 * are for the one who got them and must not enter another jar from the store.
 */
const NOT_STORED = new Set(
  'connection keep-alive proxy-authenticate proxy-authentication-info proxy-authorization '
    .concat('proxy-connection te trailer transfer-encoding upgrade set-cookie set-cookie2')
    .split(' '),
)

/** Fields of the stored content, which a 304 does not change (RFC 9111, section 3.2). */
const NOT_UPDATED = new Set([
  'content-encoding',
  'content-length',
  'content-md5',
  'content-range',
  'etag',
])

/** The fields of a response that are stored. */
export function storedFields(headers: Headers): [string, string][] {
  const control = new CacheDirectives(headers)
  const listed = new Set([
    ...listMembers(headers.get('connection')),
    ...control.fields('no-cache'),
  ])
  return headers.raw.filter(([name]) => {
    const key = name.toLowerCase()
    return !NOT_STORED.has(key) && !listed.has(key)
  })
}

/** Stored fields, updated by those of a 304 or of a response to HEAD (RFC 9111, section 4.3.4). */
export function freshenedFields(stored: CachedResponse, update: Headers): [string, string][] {
  const newer = storedFields(update).filter(([name]) => !NOT_UPDATED.has(name.toLowerCase()))
  const replaced = new Set(newer.map(([name]) => name.toLowerCase()))
  // These say how old the stored response was.
  replaced.add('age').add('date')
  const kept = stored.headers.filter(([name]) => !replaced.has(name.toLowerCase()))
  // Again as stored: the update may have named further fields in no-cache.
  return storedFields(new Headers([...kept, ...newer]))
}
