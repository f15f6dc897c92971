import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import {
  Auth,
  ConnectError,
  Headers,
  MockTransport,
  RemoteProtocolError,
  Request,
  Response,
  type RequestExtensions,
  type RequestOptions,
} from 'runwright/http'
import { Random } from '../helpers/random.js'
import { behaviour, failure, type AnyClient, type AnyClientOptions } from './both-clients.js'

const certs = fileURLToPath(new URL('../fixtures/http/certs/', import.meta.url))
const pem = (name: string): string => readFileSync(join(certs, `${name}.pem`), 'utf8')
const verify = { ca: [pem('ca'), pem('other')] }
const cert = { cert: pem('client'), key: pem('client-key') }

/** By server: `server` has a certificate for 127.0.0.1, `other` one for other.test only. */
const ORIGINS = { plain: '', plain2: '', server: '', server2: '', other: '', other2: '' }
type Server = keyof typeof ORIGINS

interface Received {
  readonly server: Server
  readonly path: string
  readonly headers: Record<string, string | undefined>
  readonly body: string
  readonly certificate: string | null
}

let worker: Worker
before(async () => {
  worker = new Worker(new URL('../fixtures/http/origins-worker.mjs', import.meta.url), {
    execArgv: [],
  })
  const [ports] = (await once(worker, 'message')) as [Record<Server, number>]
  for (const name of Object.keys(ORIGINS) as Server[]) {
    ORIGINS[name] = `${name.startsWith('plain') ? 'http' : 'https'}://127.0.0.1:${ports[name]}`
  }
})
after(async () => {
  worker.postMessage('close')
  await once(worker, 'exit')
})

type Hop = readonly [status: number, to: Server]

/** The URL at `from` that redirects along `hops`. */
function through(from: Server, hops: readonly Hop[]): string {
  const via = JSON.stringify(hops.map(([status, to]) => [status, ORIGINS[to]]))
  return `${ORIGINS[from]}/hop?via=${encodeURIComponent(via)}`
}

/** What the servers have received since the last call. */
async function received(client: AnyClient): Promise<Received[]> {
  return (await client.get(`${ORIGINS.plain}/log`, { headers: null, auth: null })).json()
}

type KnownExtension = keyof {
  [K in keyof RequestExtensions as string extends K ? never : K]: unknown
}

/** Every extension of the type: whether a redirect within the origin, or beyond it, keeps it. */
const EXTENSIONS: Readonly<
  Record<KnownExtension | 'custom', { value: unknown; within: boolean; beyond: boolean }>
> = {
  sniHostname: { value: 'server.test', within: true, beyond: false },
  target: { value: '/hop?via=%5B%5B302,%22%22%5D%5D', within: false, beyond: false },
  onUpload: { value: () => {}, within: true, beyond: true },
  onDownload: { value: () => {}, within: true, beyond: true },
  onInformation: { value: () => {}, within: true, beyond: true },
  custom: { value: { socketPath: '/run/private.sock' }, within: true, beyond: false },
}

for (const [name, { value, within, beyond }] of Object.entries(EXTENSIONS)) {
  for (const [to, keeps] of [['server', within], ['server2', beyond]] as const) {
    const where = to === 'server' ? 'within its origin' : 'to another origin'
    behaviour(
      `a redirect ${where} ${keeps ? 'keeps' : 'drops'} the extension ${name}`,
      async ({ make }) => {
        const kept: boolean[] = []
        const redirect = (next: Request): void => void kept.push(name in next.extensions)
        const client = make({ verify, followRedirects: true, eventHooks: { redirect: [redirect] } })
        const extensions = { [name]: value }
        const response = await client.get(through('server', [[302, to]]), { extensions })
        assert.equal(response.text, 'done')
        assert.deepEqual(kept, [keeps])
      },
    )
  }
}

behaviour('a certificate is verified for the name that the caller gave', async ({ make }) => {
  const client = make({ verify, followRedirects: true })
  const named = { extensions: { sniHostname: 'other.test' } }
  assert.equal((await client.get(through('other', [[302, 'other']]), named)).text, 'done')
  for (const url of [through('other', [[302, 'other2']]), through('server', [[302, 'other']])]) {
    const options = url.startsWith(ORIGINS.other) ? named : {}
    assert.ok((await failure(() => client.get(url, options))) instanceof ConnectError)
  }
  // The connection that was opened under the other name is idle now, and not for this request.
  assert.ok((await failure(() => client.get(`${ORIGINS.other}/hop`))) instanceof ConnectError)
  await received(client)
})

behaviour('sniHostname must be a name', async ({ make }) => {
  const client = make({ verify })
  for (const sniHostname of ['', 7, {}, ['other.test']]) {
    const options = { extensions: { sniHostname } as unknown as RequestExtensions }
    const error = await failure(() => client.get(`${ORIGINS.server}/hop`, options))
    assert.equal(error.code, 'ERR_HTTP_LOCAL_PROTOCOL', String(sniHostname))
  }
})

const SECRET_NAMES = [
  'Authorization',
  'Proxy-Authorization',
  'Cookie',
  'X-Api-Key',
  'Api-Key',
  'apikey',
  'X-Goog-Api-Key',
  'X-Auth-Token',
  'X-Amz-Security-Token',
  'X-CSRF-Token',
  'Private-Token',
  'X-Vault-Token',
  'X-Access-Token',
  'Ocp-Apim-Subscription-Key',
  'X-RapidAPI-Key',
  'CF-Access-Client-Secret',
  'X-Session-Id',
  'X-Password',
  'x_auth_token',
]

test('what is masked when printed is what no other origin receives', () => {
  const plain = ['Accept', 'Idempotency-Key', 'X-Request-Id', 'X-Author', 'ETag', 'Keep-Alive']
  for (const name of [...SECRET_NAMES, 'X-Mine', ...plain]) {
    const headers = new Headers({ [name]: 'value' }).maskAlso(new Set(['x-mine']))
    const masked = headers.toJSON()[name.toLowerCase()] !== 'value'
    assert.equal(masked, !plain.includes(name), name)
    headers.deleteSecrets()
    assert.equal(headers.has(name), !masked, name)
  }
  const referers = new Headers({ Referer: 'https://a.test/?q=1' })
  referers.deleteSecrets()
  assert.ok(referers.has('referer'))
  referers.set('Referer', 'https://u:p@a.test/?q=1')
  referers.deleteSecrets()
  assert.equal(referers.size, 0)
})

/** Authenticates with a header whose name says nothing. */
class OddAuth extends Auth {
  readonly #secret: string

  constructor(secret: string) {
    super()
    this.#secret = secret
  }

  override *authFlow(request: Request): Generator<Request, void, never> {
    request.headers.set('X-Odd', this.#secret)
    yield request
  }
}

/** Repeats a request that is answered 401. */
class TwoLegs extends Auth {
  override *authFlow(request: Request): Generator<Request, void, never> {
    yield request
    yield request
  }
}

const everyHeader = (secret: string): Record<string, string> =>
  Object.fromEntries(SECRET_NAMES.map((name) => [name, `${secret} ${name}`]))

/** Each way to give a secret: to the client, or with the call. */
const GIVEN: readonly ((secret: string) => { client?: AnyClientOptions; call?: RequestOptions })[] =
  [
    (secret) => ({ call: { headers: everyHeader(secret) } }),
    (secret) => ({ client: { headers: everyHeader(secret) } }),
    (secret) => ({ client: { headers: { 'X-Mine': secret }, sensitiveHeaders: ['X-Mine'] } }),
    (secret) => ({ call: { headers: { Referer: `https://u:${secret}@a.test/` } } }),
    (secret) => ({ call: { auth: ['user', secret] } }),
    (secret) => ({ client: { auth: ['user', secret] } }),
    (secret) => ({ client: { auth: new OddAuth(secret) } }),
    (secret) => ({ call: { auth: (request) => void request.headers.set('X-Odd', secret) } }),
    (secret) => ({ call: { cookies: { a: secret } } }),
    (secret) => ({ client: { cookies: { a: secret } } }),
    (secret) => ({ call: { extensions: { custom: secret } } }),
  ]

for (const by of ['the client', 'the caller', 'paginate()'] as const) {
  behaviour(`no secret reaches an origin that it was not given for: ${by} follows`, async (w) => {
    const random = new Random(14)
    const reachable: readonly Server[] = ['plain', 'plain2', 'plain', 'plain2', 'server', 'server2']
    let kept = 0
    for (let i = 0; i < GIVEN.length; i++) {
      const secret = `s3cret${i}x`
      const { client: options = {}, call = {} } = GIVEN[i]!(secret)
      const client = w.make({ verify, cert, http2: random.chance(0.3), ...options })
      const first = random.pick(reachable)
      const hops = Array.from({ length: random.integer(1, 4) }, (): Hop => {
        return [random.pick([301, 302, 303, 307, 308]), random.pick(reachable)]
      })
      const url = through(first, hops)
      const name = `${i}: ${first} ${JSON.stringify(hops)}`
      if (by === 'the client') await client.post(url, { ...call, followRedirects: true })
      else if (by === 'the caller') {
        let response = await client.post(url, call)
        while (response.nextRequest !== null) response = await client.send(response.nextRequest)
      } else {
        const pages = client.paginate(url, { ...call, followRedirects: true, maxPages: 2 })
        try {
          for await (const _page of pages);
        } catch (error) {
          assert.ok(error instanceof RemoteProtocolError, name)
        }
      }
      const all = await received(client)
      assert.ok(all.length > hops.length, name)
      for (const { server, headers, certificate } of all) {
        if (server === first) {
          kept += Number(JSON.stringify(headers).includes(secret))
          assert.equal(certificate, first.startsWith('plain') ? null : 'client.test', name)
          continue
        }
        const basic = Buffer.from(`user:${secret}`).toString('base64')
        const text = JSON.stringify(headers)
        assert.ok(!text.includes(secret) && !text.includes(basic), `${name} at ${server}: ${text}`)
        assert.equal(certificate, null, `${name} at ${server}`)
      }
    }
    // Not vacuous: the first origin gets what was given for it, also after a redirect within it.
    assert.ok(kept > GIVEN.length, String(kept))
  })
}

behaviour('http to https on default ports of a host keeps all but what is for a proxy', async (w) => {
  const seen: string[] = []
  const transport = new MockTransport((request) => {
    seen.push([...request.headers].map(([name]) => name).join(' '))
    if (request.url.protocol === 'https:') return new Response(200)
    return new Response(301, { headers: { Location: 'https://a.test/' } })
  })
  const client = w.make({ transport, followRedirects: true, headers: null })
  const headers = { Authorization: 'a', 'X-Api-Key': 'b', 'Proxy-Authorization': 'c', Host: 'd' }
  await client.get('http://a.test/', { headers })
  assert.match(seen[1]!, /authorization x-api-key/)
  assert.doesNotMatch(seen[1]!, /proxy-authorization|host/)
})

behaviour('changing the extensions of a request leaves the options of the call alone', async (w) => {
  const extensions = { custom: 'one' }
  const hook = (request: Request): void => void Object.assign(request.extensions, { custom: 'two' })
  const transport = new MockTransport(() => new Response(200))
  const client = w.make({ transport, eventHooks: { request: [hook] } })
  await client.get('http://a.test/', { extensions })
  assert.equal(extensions.custom, 'one')
})

behaviour('what a caller sends on by hand is as confined as what a client follows', async (w) => {
  const seen: Headers[] = []
  const transport = new MockTransport(({ url, headers }) => {
    seen.push(new Headers(headers))
    const Location = 'http://b.test/'
    return new Response(url.hostname === 'a.test' ? 302 : 401, { headers: { Location } })
  })
  const client = w.make({ transport, sensitiveHeaders: ['X-Mine'] })
  const first = await client.get('http://a.test/', { cookies: { a: 'for a.test' } })
  // Credentials for the new origin, in two requests: neither has the cookies of the first call.
  await client.send(first.nextRequest!, { auth: new TwoLegs() })
  assert.deepEqual(seen.map((headers) => headers.has('cookie')), [true, false, false])
  const own = new Request('GET', 'http://a.test/', { headers: { 'X-Mine': 'x' } })
  await client.send(own, { followRedirects: true })
  assert.deepEqual(seen.slice(3).map((headers) => headers.has('x-mine')), [true, false])
})
