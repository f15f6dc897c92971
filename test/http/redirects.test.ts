import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  Auth,
  ConnectError,
  Headers,
  MockTransport,
  Request,
  Response,
  type RequestExtensions,
} from 'runwright/http'
import { root } from '../helpers/markdown.js'
import { behaviour, failure } from './both-clients.js'
import { verify, ORIGINS, through, received, SECRET_NAMES } from './redirect-origins.js'

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

test('what is masked when printed is what no other origin receives', () => {
  const plain = [
    ...['Accept', 'Idempotency-Key', 'X-Idempotency-Key', 'X-Request-Id', 'X-Author', 'ETag'],
    ...['Keep-Alive', 'WWW-Authenticate', 'Proxy-Authenticate', 'X-RateLimit-Remaining-Tokens'],
    ...['X-Keyboard', 'X-Assignment', 'X-Bypass', 'X-Certain', 'X-Dry-Run', 'Digest', 'X-Monkeys'],
    ...['X-HTTP-Method-Override', 'SOAPAction', 'Depth', 'Mcp-Protocol-Version', 'X-Tenant'],
    ...['Content-Digest', 'X-Amz-Date', 'X-Resident', 'Design', 'Sec-WebSocket-Key'],
  ]
  for (const name of [...SECRET_NAMES, 'X-Mine', ...plain]) {
    const headers = new Headers({ [name]: 'value' }).maskAlso(new Set(['x-mine']))
    const masked = headers.toJSON()[name.toLowerCase()] !== 'value'
    assert.equal(masked, !plain.includes(name), name)
    headers.deleteSecrets()
    assert.equal(headers.has(name), !masked, name)
  }
  const guide = readFileSync(join(root, 'docs/http-client.md'), 'utf8')
  const [, list = ''] = /in its name \(but [^]*?\n\n([^]*?)\n\n/.exec(guide) ?? []
  const [whole = '', ends = ''] = list.split('words that end with')
  const said = [whole, ends].map((part) => [...part.matchAll(/`(\w+)`/g)].map(([, word]) => word!))
  assert.ok(said.every((words) => words.length > 10))
  const names = said.flatMap((words, at) => words.map((word) => (at === 0 ? 'x-' : 'x-any') + word))
  for (const name of names.flatMap((one) => [one, `${one}-2`, one.replace('-', '_')])) {
    assert.equal(new Headers({ [name]: 'value' }).toJSON()[name], '[secret]', name)
  }
  const referers = new Headers({ Referer: 'https://a.test/?q=1' })
  referers.deleteSecrets()
  assert.ok(referers.has('referer'))
  referers.set('Referer', 'https://u:p@a.test/?q=1')
  referers.deleteSecrets()
  assert.equal(referers.size, 0)
})

/** Repeats a request that is answered 401. */
class TwoLegs extends Auth {
  override *authFlow(request: Request): Generator<Request, void, never> {
    yield request
    yield request
  }
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
