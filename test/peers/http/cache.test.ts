/**
 * The suite of npm's `http-cache-tests`, as it runs against browsers, for both clients with a
 * CacheTransport, which is a private cache too. Its server runs on another thread, as `Client`
 * blocks this one.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import {
  AsyncClient,
  BlockingTransport,
  CacheTransport,
  Client,
  Cookies,
  HttpTransport,
} from 'runwright/http'

interface CacheTest {
  readonly id: string
  readonly kind?: 'required' | 'optimal' | 'check'
}

const folder = new URL('../node_modules/http-cache-tests/', import.meta.url)

// The package has no types.
const load = (path: string): Promise<unknown> => import(folder.href + path)
const suites = (await load('tests/index.mjs')) as { default: { tests: CacheTest[] }[] }
const config = (await load('client/config.mjs')) as {
  setFetch(fetch: unknown): void
  setBaseUrl(url: string): void
  setUseBrowserCache(isBrowser: boolean): void
}
const { makeCacheTest, testResults } = (await load('client/test.mjs')) as {
  makeCacheTest(test: CacheTest): Promise<void>
  testResults: Record<string, true | readonly [kind: string, message: string]>
}

const SET_COOKIE = 'Set-Cookie is not stored: it must not enter the jar of another client'
const NO_STALE = 'needs stale-close: nothing stale is served after an error without stale-if-error'
const NO_PARTS = 'ranges are left to the server, and parts are not stored'
const NO_HEURISTIC = 'heuristic freshness is off unless it is asked for'
const LANGUAGE = 'a value that Vary names is compared as it is; that of Accept-Language has no exception'
const SHARED = 'for shared caches'

/** Cases of the kinds required and optimal that fail, with the reason. */
const notForUs: Readonly<Record<string, string>> = {
  'headers-store-Set-Cookie': SET_COOKIE,
  'headers-store-Set-Cookie2': SET_COOKIE,
  '304-etag-update-response-Set-Cookie': SET_COOKIE,
  '304-etag-update-response-Set-Cookie2': SET_COOKIE,
  'headers-store-Transfer-Encoding':
    'the server sends an unknown transfer coding, which a client must refuse (RFC 9112, section 6.1)',
  'age-parse-prefix':
    'its title wants a list of two ages to be stale, its expectation fresh; here it is stale',
  'stale-close-must-revalidate': NO_STALE,
  'stale-close-proxy-revalidate': NO_STALE,
  'stale-close-no-cache': NO_STALE,
  'stale-close-s-maxage=2': NO_STALE,
  'partial-use-headers': NO_PARTS,
  'partial-store-partial-reuse-partial': NO_PARTS,
  'partial-store-complete-reuse-partial': NO_PARTS,
  'partial-store-complete-reuse-partial-no-last': NO_PARTS,
  'partial-store-complete-reuse-partial-suffix': NO_PARTS,
  'partial-store-partial-reuse-partial-byterange': NO_PARTS,
  'partial-store-partial-reuse-partial-absent': NO_PARTS,
  'partial-store-partial-reuse-partial-suffix': NO_PARTS,
  'partial-store-partial-complete': NO_PARTS,
  ...Object.fromEntries(
    [200, 203, 204, 404, 405, 410, 414, 501, 599].map((status) => [
      `heuristic-${status}-cached`,
      NO_HEURISTIC,
    ]),
  ),
  'method-POST': 'only responses to GET are stored',
  'other-cookie': 'requests with other cookies are other users',
  'vary-normalise-lang-case': LANGUAGE,
  'vary-normalise-lang-order': LANGUAGE,
  'vary-normalise-lang-select': LANGUAGE,
  // Left out for browsers by the suite, and run here.
  'conditional-lm-fresh-no-lm':
    'a Date after If-Modified-Since means modified where there is no Last-Modified (RFC 9111, 4.3.2)',
  'cc-resp-private-shared': SHARED,
  'freshness-s-maxage-shared': SHARED,
  'freshness-max-age-s-maxage-shared-longer': SHARED,
  'freshness-max-age-s-maxage-shared-longer-reversed': SHARED,
  'freshness-max-age-s-maxage-shared-longer-multiple': SHARED,
  'freshness-max-age-s-maxage-shared-shorter': SHARED,
  'freshness-max-age-s-maxage-shared-shorter-expires': SHARED,
  'other-authorization-public': SHARED,
  'other-authorization-must-revalidate': SHARED,
  'other-authorization-smaxage': SHARED,
}

const SERVER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const names = ['config', 'test', 'state']
  console.log = () => {}
  const load = (name) => import(workerData + 'server/handle-' + name + '.mjs')
  Promise.all(names.map(load)).then((all) => {
    const server = require('node:http').createServer((request, response) => {
      const [name, ...rest] = request.url.split('?')[0].slice(1).split('/')
      all[names.indexOf(name)].default(rest, request, response)
    })
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
  })
`

let worker: Worker
let origin = ''

before(async () => {
  worker = new Worker(SERVER, { eval: true, workerData: folder.href, execArgv: [] })
  const [port] = (await once(worker, 'message')) as [number]
  origin = `http://127.0.0.1:${port}`
})
after(() => worker.terminate())

/** What the runner of the suite calls in place of a browser's fetch. */
function fetchBy(client: AsyncClient | Client) {
  return async (url: string, init: RequestInit & { headers?: [string, unknown][] } = {}) => {
    const headers = (init.headers ?? []).map(([name, value]) => [name, String(value)] as const)
    // As the Fetch standard translates its cache modes.
    const more = init.cache === 'no-cache' ? [['Cache-Control', 'max-age=0'] as const] : []
    const response = await client.request(init.method ?? 'GET', url, {
      headers: [...headers, ...more],
      ...(init.body === undefined ? {} : { content: init.body as string }),
    })
    return {
      status: response.statusCode,
      statusText: response.reasonPhrase,
      headers: new Headers([...response.headers]),
      text: async () => response.text,
    }
  }
}

for (const kind of ['AsyncClient', 'Client'] as const) {
  test(`${kind}: the cases of http-cache-tests that apply to a private cache pass`, async (t) => {
    const cookies = new Cookies(null, { persist: false })
    const timeout = 60_000
    const network = kind === 'Client' ? new BlockingTransport() : new HttpTransport()
    const transport = new CacheTransport(network as HttpTransport)
    const options = { transport: transport as never, cookies, timeout }
    const client = kind === 'Client' ? new Client(options) : new AsyncClient(options)
    config.setFetch(fetchBy(client))
    config.setBaseUrl(origin)
    config.setUseBrowserCache(true)
    // Those that are left out for browsers are run too: a client can see and send more.
    const all = suites.default.flatMap(({ tests }) => tests)
    for (const id of Object.keys(testResults)) delete testResults[id]
    let open = all
    // Cases have freshness of 2 s, which a busy machine may miss with all of them at once.
    for (let round = 0; round < 3 && open.length > 0; round++) {
      for (const { id } of open) delete testResults[id]
      await Promise.all(open.map((each) => makeCacheTest(structuredClone(each))))
      open = open.filter(({ id, kind: group }) => {
        return group !== 'check' && notForUs[id] === undefined && testResults[id] !== true
      })
    }
    await client.close()
    await transport.close()
    const tally: Record<string, [passed: number, of: number]> = {}
    const wrong: string[] = []
    for (const { id, kind: group = 'required' } of all) {
      const result = testResults[id]
      const count = (tally[group] ??= [0, 0])
      count[1]++
      if (result === true) count[0]++
      if (group === 'check') continue
      if (result !== true && notForUs[id] === undefined) wrong.push(`${id}: ${String(result)}`)
      if (result === true && notForUs[id] !== undefined) wrong.push(`${id} passes: unlist it`)
    }
    t.diagnostic(JSON.stringify(tally))
    const ids = new Set(all.map(({ id }) => id))
    wrong.push(...Object.keys(notForUs).filter((id) => !ids.has(id)).map((id) => `${id}: no case`))
    assert.deepEqual(wrong, [])
  })
}
