import assert from 'node:assert/strict'
import { Auth, RemoteProtocolError, Request, type RequestOptions } from 'runwright/http'
import { Random } from '../helpers/random.js'
import { behaviour, type AnyClientOptions } from './both-clients.js'
import {
  pem,
  verify,
  type Server,
  type Hop,
  through,
  received,
  SECRET_NAMES,
} from './redirect-origins.js'

const cert = { cert: pem('client'), key: pem('client-key') }

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
