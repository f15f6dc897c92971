/**
 * What a private cache may store and use, rule by rule (RFC 9111, RFC 5861, RFC 8246): for each
 * row a first request, a wait, and what the second one gets.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CacheTransportOptions } from 'runwright/http'
import { KINDS, World, type Answer, type Fields } from './world.js'

interface Row {
  /** The first response. */
  readonly first: Answer
  /** The seconds until the second request. */
  readonly wait?: number
  /** Fields of the second request, and of the first one. */
  readonly request?: Fields
  readonly before?: Fields
  /** What the origin would answer then: 304 to a condition, else this. */
  readonly then?: Answer
  readonly is: 'hit' | 'stale' | 'revalidated' | 'miss' | 'bypass'
  /** The expected status, if it is not 200, and Age. */
  readonly status?: number
  readonly age?: string
  readonly options?: CacheTransportOptions
  /** For one client alone. */
  readonly only?: (typeof KINDS)[number]
}

const cc = (value: string, more: Fields = {}, rest: Answer = {}): Answer => ({
  headers: { 'Cache-Control': value, ...more },
  ...rest,
})
const start = (seconds: number): string =>
  new Date(Date.parse('2026-06-01T00:00:00Z') + seconds * 1000).toUTCString()

const rfc9111: Record<string, Row> = {
  // Section 3: storing
  'no freshness and no validator': { first: {}, is: 'miss' },
  'no-store': { first: cc('no-store, max-age=60', { ETag: '"1"' }), is: 'miss' },
  'no-store with a semicolon': { first: cc('no-store; max-age=60', { ETag: '"1"' }), is: 'miss' },
  'private': { first: cc('private, max-age=60'), is: 'hit' },
  'private, and a session begins': {
    first: cc('private, max-age=60', { 'Set-Cookie': 'sid=1' }), is: 'miss',
  },
  'public, and a cookie is set': { first: cc('max-age=60', { 'Set-Cookie': 'a=1' }), is: 'hit' },
  'an error with explicit freshness': { first: cc('max-age=60', {}, { status: 500 }), is: 'hit', status: 500 },
  'an error with a validator only': { first: { status: 403, headers: { ETag: '"1"' } }, is: 'miss' },
  'an unknown status with must-understand': {
    first: cc('max-age=60, must-understand', {}, { status: 599 }), is: 'miss',
  },
  'a known status with must-understand and no-store': {
    first: cc('max-age=60, must-understand, no-store'), is: 'hit',
  },
  'partial content': { first: cc('max-age=60', {}, { status: 206 }), is: 'miss' },
  'a redirect': { first: cc('max-age=60', { Location: '/x' }, { status: 301 }), is: 'hit', status: 301 },
  'no content': { first: cc('max-age=60', {}, { status: 204 }), is: 'hit', status: 204 },
  // Section 4.1: Vary
  'Vary: *': { first: cc('max-age=60', { Vary: '*' }), is: 'miss' },
  'Vary, the same value': {
    first: cc('max-age=60', { Vary: 'X' }), before: { X: 'a,b' }, request: { X: 'a,  b' }, is: 'hit',
  },
  'Vary, another value': {
    first: cc('max-age=60', { Vary: 'X' }), before: { X: 'a' }, request: { X: 'b' }, is: 'miss',
  },
  'Vary, the field is gone': { first: cc('max-age=60', { Vary: 'X' }), before: { X: 'a' }, is: 'miss' },
  'Vary, an empty field is not none': {
    first: cc('max-age=60', { Vary: 'X' }), request: { X: '' }, is: 'miss',
  },
  'Vary, several lines': {
    first: cc('max-age=60', { Vary: ['X', 'y, '] }), before: { Y: '1' }, request: { Y: '2' }, is: 'miss',
  },
  // Section 4.2: freshness
  'max-age, before its end': { first: cc('max-age=60'), wait: 59.9, is: 'hit', age: '59' },
  'max-age, at its end': { first: cc('max-age=60'), wait: 60, is: 'miss' },
  'max-age over Expires': { first: cc('max-age=60', { Expires: start(5) }), wait: 30, is: 'hit' },
  'max-age=0 over Expires': { first: cc('max-age=0', { Expires: start(60) }), is: 'miss' },
  's-maxage is for shared caches': { first: cc('max-age=60, s-maxage=1'), wait: 30, is: 'hit' },
  'a huge max-age': { first: cc('max-age=99999999999999999999'), wait: 1e9, is: 'hit' },
  'a negative max-age': { first: cc('max-age=-1'), is: 'miss' },
  'a max-age with a fraction': { first: cc('max-age=60.0'), is: 'miss' },
  'a quoted max-age': { first: cc('max-age="60"'), is: 'hit' },
  'two equal max-age': { first: cc('max-age=60, max-age=60'), is: 'hit' },
  'two different max-age': { first: cc('max-age=60, max-age=50'), is: 'miss' },
  'a max-age in quotation marks': { first: cc('x="max-age=60", max-age=1'), wait: 5, is: 'miss' },
  'a quotation mark that is not closed': {
    first: cc('max-age=60, x="a, no-store'), is: 'miss',
  },
  'Expires in the future': { first: { headers: { Expires: start(60) } }, wait: 30, is: 'hit' },
  'Expires in the past': { first: { headers: { Expires: start(-1) } }, is: 'miss' },
  'Expires: 0': { first: { headers: { Expires: '0' } }, is: 'miss' },
  'two Expires': { first: { headers: { Expires: [start(60), start(60)] } }, is: 'miss' },
  'Expires by a clock that is fast': {
    first: { headers: { Date: start(3600), Expires: start(3660) } }, wait: 61, is: 'miss',
  },
  'Expires with a Date that is none': {
    first: { headers: { Date: 'now', Expires: start(60) } }, wait: 30, is: 'hit',
  },
  'heuristic freshness is off': { first: { headers: { 'Last-Modified': start(-1000) } }, is: 'revalidated' },
  'heuristic freshness': {
    first: { headers: { 'Last-Modified': start(-1000) } },
    wait: 99, options: { heuristic: true }, is: 'hit',
  },
  'heuristic freshness is over': {
    first: { headers: { 'Last-Modified': start(-1000) } },
    wait: 100, options: { heuristic: true }, is: 'revalidated',
  },
  'heuristic freshness is a day at most': {
    first: { headers: { 'Last-Modified': start(-1e9) } },
    wait: 86_400, options: { heuristic: true }, is: 'revalidated',
  },
  'heuristic freshness of a status that has none': {
    first: { status: 403, headers: { 'Last-Modified': start(-1000) } },
    options: { heuristic: true }, is: 'miss',
  },
  'Age counts': { first: cc('max-age=60', { Age: '50' }), wait: 9, is: 'hit', age: '59' },
  'Age is over': { first: cc('max-age=60', { Age: '50' }), wait: 10, is: 'miss' },
  'a huge Age': {
    first: cc('max-age=60', { Age: '9'.repeat(99) }), request: { 'Cache-Control': 'max-stale' },
    is: 'stale', age: '2147483648',
  },
  'an Age that is no number': { first: cc('max-age=60', { Age: 'abc' }), is: 'miss' },
  'a negative Age': { first: cc('max-age=60', { Age: '-1' }), is: 'miss' },
  'two Age': { first: cc('max-age=60', { Age: ['0', '0'] }), is: 'miss' },
  'an old Date': { first: cc('max-age=60', { Date: start(-50) }), wait: 9, is: 'hit', age: '59' },
  'a Date in the future': { first: cc('max-age=60', { Date: start(500) }), wait: 59, is: 'hit', age: '59' },
  'a clock that was set back': { first: cc('max-age=60'), wait: -1, is: 'miss' },
  // Section 4.3: validation
  'a stale response with an entity tag': { first: cc('max-age=1', { ETag: 'W/"1"' }), wait: 5, is: 'revalidated' },
  'a stale response that has changed': {
    first: cc('max-age=1', { ETag: '"1"' }), wait: 5, then: cc('max-age=60', { ETag: '"2"' }), is: 'miss',
  },
  'no-cache with a validator': { first: cc('no-cache', { ETag: '"1"' }), is: 'revalidated' },
  'no-cache over max-age': { first: cc('no-cache, max-age=60'), is: 'miss' },
  'no-cache for single fields': { first: cc('max-age=60, no-cache="x"', { X: '1' }), is: 'hit' },
  'must-revalidate, fresh': { first: cc('max-age=60, must-revalidate'), is: 'hit' },
  // Section 5.2.1: what requests want
  'no-cache in the request': {
    first: cc('max-age=60', { ETag: '"1"' }), request: { 'Cache-Control': 'no-cache' }, is: 'revalidated',
  },
  'Pragma in the request': { first: cc('max-age=60'), request: { Pragma: 'no-cache' }, is: 'miss' },
  'Pragma besides Cache-Control': {
    first: cc('max-age=60'), request: { Pragma: 'no-cache', 'Cache-Control': 'max-age=50' }, is: 'hit',
  },
  'no-store in the request': { first: cc('max-age=60'), request: { 'Cache-Control': 'no-store' }, is: 'bypass' },
  'no-store in the first request': {
    first: cc('max-age=60'), before: { 'Cache-Control': 'no-store' }, is: 'miss',
  },
  'max-age in the request': {
    first: cc('max-age=60'), wait: 10, request: { 'Cache-Control': 'max-age=10' }, is: 'miss',
  },
  'a longer max-age in the request': {
    first: cc('max-age=60'), wait: 10, request: { 'Cache-Control': 'max-age=11' }, is: 'hit',
  },
  'max-age=0 at once': { first: cc('max-age=60'), request: { 'Cache-Control': 'max-age=0' }, is: 'miss' },
  'max-age=0 for what is immutable (RFC 8246)': {
    first: cc('max-age=60, immutable'), request: { 'Cache-Control': 'max-age=0' }, is: 'hit',
  },
  'no-cache for what is immutable': {
    first: cc('max-age=60, immutable'), request: { 'Cache-Control': 'no-cache' }, is: 'miss',
  },
  'immutable, and no longer fresh': {
    first: cc('max-age=60, immutable'), wait: 60, is: 'miss',
  },
  'min-fresh': { first: cc('max-age=60'), wait: 50, request: { 'Cache-Control': 'min-fresh=10' }, is: 'hit' },
  'too long a min-fresh': {
    first: cc('max-age=60'), wait: 50, request: { 'Cache-Control': 'min-fresh=11' }, is: 'miss',
  },
  'max-stale': {
    first: cc('max-age=60'), wait: 70, request: { 'Cache-Control': 'max-stale=10' }, is: 'stale', age: '70',
  },
  'too short a max-stale': {
    first: cc('max-age=60'), wait: 70, request: { 'Cache-Control': 'max-stale=9' }, is: 'miss',
  },
  'max-stale without a limit': {
    first: cc('max-age=60'), wait: 1e6, request: { 'Cache-Control': 'max-stale' }, is: 'stale',
  },
  'max-stale against must-revalidate': {
    first: cc('max-age=1, must-revalidate'), wait: 9, request: { 'Cache-Control': 'max-stale' }, is: 'miss',
  },
  'max-stale against no-cache': {
    first: cc('max-age=1, no-cache', { ETag: '"1"' }), wait: 9,
    request: { 'Cache-Control': 'max-stale' }, is: 'revalidated',
  },
  'only-if-cached': { first: cc('max-age=60'), request: { 'Cache-Control': 'only-if-cached' }, is: 'hit' },
  'only-if-cached, stale': {
    first: cc('max-age=1'), wait: 5, request: { 'Cache-Control': 'only-if-cached' }, is: 'miss', status: 504,
  },
  'only-if-cached and max-stale': {
    first: cc('max-age=1'), wait: 5,
    request: { 'Cache-Control': 'only-if-cached, max-stale=4' }, is: 'stale',
  },
  'only-if-cached within stale-while-revalidate': {
    first: cc('max-age=1, stale-while-revalidate=60'), wait: 5,
    request: { 'Cache-Control': 'only-if-cached' }, is: 'miss', status: 504,
  },
  // Requests that are not for the cache
  'a range': { first: cc('max-age=60'), request: { Range: 'bytes=0-1' }, is: 'bypass' },
  'If-Match': { first: cc('max-age=60'), request: { 'If-Match': '"1"' }, is: 'bypass' },
  // Section 4.3.2: conditions of the caller
  'If-None-Match that matches': {
    first: cc('max-age=60', { ETag: '"1"' }), request: { 'If-None-Match': '"0", W/"1"' }, is: 'hit', status: 304,
  },
  'If-None-Match that does not match': {
    first: cc('max-age=60', { ETag: '"1"' }), request: { 'If-None-Match': '"0"' }, is: 'hit',
  },
  'If-None-Match takes precedence': {
    first: cc('max-age=60', { ETag: '"1"', 'Last-Modified': start(-9) }),
    request: { 'If-None-Match': '"0"', 'If-Modified-Since': start(0) }, is: 'hit',
  },
  'If-Modified-Since, not modified': {
    first: cc('max-age=60', { 'Last-Modified': start(-9) }),
    request: { 'If-Modified-Since': start(-9) }, is: 'hit', status: 304,
  },
  'If-Modified-Since, modified': {
    first: cc('max-age=60', { 'Last-Modified': start(-9) }),
    request: { 'If-Modified-Since': start(-10) }, is: 'hit',
  },
  'conditions, and nothing fresh': {
    first: cc('max-age=1', { ETag: '"1"' }), wait: 5, request: { 'If-None-Match': '"1"' }, is: 'bypass', status: 304,
  },
}

const swr = cc('max-age=60, stale-while-revalidate=30', { ETag: '"1"' })
const sie = cc('max-age=60, stale-if-error=30')
const outage = (status: number): Answer => ({ status, body: 'down' })

const rfc5861: Record<string, Row> = {
  'stale-while-revalidate': { first: swr, wait: 89, is: 'stale', age: '89', only: 'AsyncClient' },
  'stale-while-revalidate in the foreground': {
    first: swr, wait: 89, is: 'revalidated', only: 'Client',
  },
  'stale-while-revalidate is over': { first: swr, wait: 90, is: 'revalidated' },
  'stale-while-revalidate against the request': {
    first: swr, wait: 70, request: { 'Cache-Control': 'max-age=100' }, is: 'revalidated',
  },
  'stale-while-revalidate and must-revalidate': {
    first: cc('max-age=60, stale-while-revalidate=30, must-revalidate'), wait: 70, is: 'miss',
  },
  ...Object.fromEntries(
    [500, 502, 503, 504].map((status) => [
      `stale-if-error, ${status}`,
      { first: sie, wait: 89, then: outage(status), is: 'stale', age: '89' },
    ]),
  ),
  'stale-if-error, another error': { first: sie, wait: 70, then: outage(501), is: 'miss', status: 501 },
  'stale-if-error, not found': { first: sie, wait: 70, then: outage(404), is: 'miss', status: 404 },
  'stale-if-error is over': { first: sie, wait: 90, then: outage(503), is: 'miss', status: 503 },
  'stale-if-error and must-revalidate': {
    first: cc('max-age=60, stale-if-error=30, must-revalidate'),
    wait: 70, then: outage(503), is: 'miss', status: 503,
  },
  'stale-if-error and no-cache in the request': {
    first: sie, wait: 70, request: { 'Cache-Control': 'no-cache' },
    then: outage(503), is: 'miss', status: 503,
  },
  'stale-if-error of the request': {
    first: cc('max-age=60'), wait: 70, request: { 'Cache-Control': 'stale-if-error=30' },
    then: outage(503), is: 'stale',
  },
  'an error without stale-if-error': { first: cc('max-age=60'), wait: 70, then: outage(503), is: 'miss', status: 503 },
}

for (const [rfc, rows] of [['RFC 9111', rfc9111], ['RFC 5861', rfc5861]] as const) {
  for (const kind of KINDS) {
    test(`${kind}: ${rfc}, ${Object.keys(rows).length} rules of a private cache`, async () => {
      for (const [name, row] of Object.entries(rows)) {
        if (row.only !== undefined && row.only !== kind) continue
        const world = new World(kind, row.options)
        world.answers = [row.first]
        await world.get('/', { headers: row.before ?? {} })
        world.wait(row.wait ?? 0)
        const isConditional = row.is === 'revalidated' || row.status === 304
        world.answers = [row.then ?? (isConditional ? { status: 304 } : {})]
        const response = await world.get('/', { headers: row.request ?? {} })
        const { status } = response.extensions.cache!
        assert.equal(status, row.is, name)
        const isStored = ['hit', 'stale', 'revalidated'].includes(row.is)
        const usual = isStored ? row.first.status : row.then?.status
        assert.equal(response.statusCode, row.status ?? usual ?? 200, name)
        const bodies = { 204: '', 304: '', 504: '', [row.then?.status ?? 0]: 'down' }
        const body = bodies[response.statusCode]
        assert.equal(response.text, body ?? `body ${isStored ? 1 : 2}`, name)
        assert.equal(response.headers.get('age'), row.age ?? response.headers.get('age'), name)
        if (isStored && status !== 'revalidated') assert.ok(response.headers.has('age'), name)
        await world.client.close()
        await world.transport.close()
      }
    })
  }
}
