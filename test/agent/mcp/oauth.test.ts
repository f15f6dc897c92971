import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import {
  McpError,
  openMcpServer,
  type McpOAuthOptions,
  type McpOAuthState,
  type McpServer,
  type McpServerOptions,
  type McpTokenStore,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { refuseUrl } from '../../../lib/agent/mcp/oauth/allowed-url.js'
import { serve } from '../../helpers/serve.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'
import { call } from './support.js'

type Json = Readonly<Record<string, unknown>>

/** A resource and its authorization server, at one address; tests change what it says. */
class Bench {
  readonly tokenRequests: Record<string, string>[] = []
  readonly registrations: Json[] = []
  readonly asked: URL[] = []
  readonly sent: (string | undefined)[] = []
  origin = ''
  /** The tokens that are accepted, with their scopes. */
  readonly valid = new Map<string, string[]>()
  /** The scopes that calls of tools need. */
  needs: string[] = []
  alwaysRefuses = false
  resourceMetadata: Json = {}
  serverMetadata: Json = {}
  tokenAnswer: { readonly status: number; readonly body: Json } | null = null

  static async start(t: TestContext): Promise<Bench> {
    const bench = new Bench()
    const served = await serve(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      const { status, value, headers } = bench.#answer(
        `${request.method} ${request.url}`,
        body,
        request.headers.authorization,
      )
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify(value))
    })
    t.after(() => served.close())
    bench.origin = served.origin
    return bench
  }

  #answer(
    what: string,
    body: string,
    authorization: string | undefined,
  ): { status: number; value: unknown; headers?: Record<string, string> } {
    const { origin } = this
    switch (what) {
      case 'GET /.well-known/oauth-protected-resource/mcp': {
        const resource = `${origin}/mcp`
        const value = { resource, authorization_servers: [origin], ...this.resourceMetadata }
        return { status: 200, value }
      }
      case 'GET /.well-known/oauth-authorization-server': {
        const value = {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
          ...this.serverMetadata,
        }
        return { status: 200, value }
      }
      case 'POST /register':
        this.registrations.push(JSON.parse(body) as Json)
        return { status: 201, value: { client_id: 'registered' } }
      case 'POST /token':
        return this.#token(Object.fromEntries(new URLSearchParams(body)), authorization)
      case 'POST /mcp':
        return this.#call(JSON.parse(body) as { id?: number; method: string }, authorization)
      default:
        return { status: 404, value: {} }
    }
  }

  #token(
    request: Record<string, string>,
    authorization = '',
  ): { status: number; value: unknown } {
    this.tokenRequests.push({ ...request, authorization })
    if (this.tokenAnswer !== null)
      return { status: this.tokenAnswer.status, value: this.tokenAnswer.body }
    const n = this.tokenRequests.length
    const scope = request['scope'] ?? this.asked.at(-1)?.searchParams.get('scope') ?? ''
    this.valid.set(`access-token-${n}`, scope.split(' '))
    const value = {
      access_token: `access-token-${n}`, token_type: 'bearer', refresh_token: `refresh-token-${n}`,
    }
    return { status: 200, value }
  }

  #call(
    { id, method }: { readonly id?: number; readonly method: string },
    authorization: string | undefined,
  ): { status: number; value: unknown; headers?: Record<string, string> } {
    this.sent.push(authorization)
    const scopes = this.valid.get(authorization?.replace('Bearer ', '') ?? '')
    const metadata = `resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"`
    if (scopes === undefined || this.alwaysRefuses) {
      const headers = { 'www-authenticate': `Bearer ${metadata}, scope="read"` }
      return { status: 401, value: {}, headers }
    }
    if (method === 'tools/call' && !this.needs.every((scope) => scopes.includes(scope))) {
      const scope = `scope="${this.needs.join(' ')}"`
      const headers = { 'www-authenticate': `Bearer error="insufficient_scope", ${scope}` }
      return { status: 403, value: {}, headers }
    }
    if (id === undefined) return { status: 202, value: {} }
    const results: Readonly<Record<string, unknown>> = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} } },
      'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'done' }] },
    }
    return { status: 200, value: { jsonrpc: '2.0', id, result: results[method] } }
  }

  /** Grants access at once; `change` alters the URL to which the browser is sent. */
  byCode(more: McpOAuthOptions = {}, change = (_: URL): void => undefined): McpOAuthOptions {
    return {
      redirectUrl: 'http://127.0.0.1:7777/callback',
      authorize: ({ url }) => {
        const page = new URL(url)
        this.asked.push(page)
        const back = new URL(page.searchParams.get('redirect_uri') ?? '')
        back.searchParams.set('code', 'code-for-one-use')
        back.searchParams.set('state', page.searchParams.get('state') ?? '')
        change(back)
        return back.href
      },
      ...more,
    }
  }

  async open(
    t: TestContext,
    oauth: McpOAuthOptions,
    more: Partial<McpServerOptions> = {},
  ): Promise<McpServer> {
    const options = { name: 'guarded', url: `${this.origin}/mcp`, oauth, ...more }
    const server = await openMcpServer(options as McpServerOptions)
    t.after(() => server.close())
    return server
  }
}

/** As a host would keep it in a database. */
class JsonStore implements McpTokenStore {
  text = 'null'

  load(): McpOAuthState | null {
    return JSON.parse(this.text) as McpOAuthState | null
  }

  save(state: McpOAuthState): void {
    this.text = JSON.stringify(state)
  }
}

test('a person grants access by a code with PKCE, to a client that is registered', async (t) => {
  const bench = await Bench.start(t)
  const server = await bench.open(t, bench.byCode())
  assert.equal((await call(server, 'echo')).output, 'done')
  const [page] = bench.asked
  const asked = Object.fromEntries(page?.searchParams ?? [])
  assert.equal(bench.asked.length, 1)
  assert.equal(bench.registrations.length, 1)
  assert.deepEqual(
    [asked['client_id'], asked['resource'], asked['scope'], asked['code_challenge_method']],
    ['registered', `${bench.origin}/mcp`, 'read', 'S256'],
  )
  const [request] = bench.tokenRequests
  assert.deepEqual(
    [request?.['code'], request?.['resource'], request?.['redirect_uri'], request?.['client_id']],
    ['code-for-one-use', `${bench.origin}/mcp`, 'http://127.0.0.1:7777/callback', 'registered'],
  )
  const verifier = request?.['code_verifier'] ?? ''
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  assert.equal(asked['code_challenge'], challenge)
  assert.equal(bench.sent.at(-1), 'Bearer access-token-1')
  assert.doesNotMatch(inspect(server, { depth: 9, showHidden: true }), /access-token|refresh-token/)
})

test('a store keeps tokens and client, and a token that is refused is refreshed', async (t) => {
  const bench = await Bench.start(t)
  const store = new JsonStore()
  await (await bench.open(t, bench.byCode({ store }))).close()
  const again = await bench.open(t, bench.byCode({ store }))
  assert.equal(bench.tokenRequests.length, 1, 'the token is used again')
  bench.valid.clear()
  assert.equal((await call(again, 'echo')).output, 'done')
  const { grant_type, refresh_token, resource, client_id } = bench.tokenRequests[1] ?? {}
  assert.deepEqual(
    [grant_type, refresh_token, resource, client_id],
    ['refresh_token', 'refresh-token-1', `${bench.origin}/mcp`, 'registered'],
  )
  assert.match(store.text, /access-token-2.*refresh-token-2/)
  assert.deepEqual([bench.asked.length, bench.registrations.length], [1, 1])
})

test('when a refresh token is no longer valid, the person is asked again', async (t) => {
  const bench = await Bench.start(t)
  const store = new JsonStore()
  await (await bench.open(t, bench.byCode({ store }))).close()
  bench.valid.clear()
  bench.tokenAnswer = { status: 400, body: { error: 'invalid_grant' } }
  const oauth = bench.byCode({ store }, () => (bench.tokenAnswer = null))
  await bench.open(t, oauth)
  assert.equal(bench.asked.length, 2)
})

test('what another authorization server has issued is not used', async (t) => {
  const bench = await Bench.start(t)
  const store = new JsonStore()
  store.save({
    issuer: 'https://other.example',
    client: { id: 'theirs', secret: 'their-secret-1', method: null },
    tokens: { access: 'their-access-1', refresh: 'their-refresh-1', scopes: [] },
  })
  await bench.open(t, bench.byCode({ store }))
  assert.equal(bench.registrations.length, 1)
  assert.deepEqual(bench.tokenRequests.map(({ grant_type }) => grant_type), ['authorization_code'])
})

test('a client with a secret gets access by itself', async (t) => {
  const bench = await Bench.start(t)
  const issuer = bench.origin
  await bench.open(t, { clientId: 'me:1', clientSecret: 'a secret of mine', issuer })
  const [request] = bench.tokenRequests
  assert.equal(request?.['grant_type'], 'client_credentials')
  const pair = Buffer.from('me%3A1:a+secret+of+mine').toString('base64')
  assert.equal(request?.['authorization'], `Basic ${pair}`)
  assert.equal(bench.asked.length, 0)
})

test('scopes that are missing are asked for in addition, once for all calls', async (t) => {
  const bench = await Bench.start(t)
  const server = await bench.open(t, bench.byCode())
  bench.needs = ['write']
  const calls = await Promise.all([call(server, 'echo'), call(server, 'echo')])
  assert.deepEqual(calls.map(({ output }) => output), ['done', 'done'])
  assert.deepEqual(
    bench.asked.map(({ searchParams }) => searchParams.get('scope')),
    ['read', 'read write'],
  )
})

test('scopes that were asked for are not asked for again', async (t) => {
  const bench = await Bench.start(t)
  const server = await bench.open(t, bench.byCode())
  bench.needs = ['read', 'never']
  const { output, exitCode } = await call(server, 'echo')
  assert.deepEqual([output, exitCode], ['done', 0])
  // As if the server did not count them.
  for (const scopes of bench.valid.values()) scopes.length = 0
  const refused = await call(server, 'echo')
  assert.equal(refused.exitCode, 1)
  assert.match(refused.output, /scopes are missing that were asked for: read never/)
  assert.equal(bench.asked.length, 2)
})

test('a token that is refused at once is not replaced again and again', async (t) => {
  const bench = await Bench.start(t)
  bench.alwaysRefuses = true
  const clock = new ManualClock()
  await assert.rejects(bench.open(t, bench.byCode(), { clock }), (error) => {
    assert.ok(error instanceof McpError && error.problem === 'unauthorized')
    assert.match(error.message, /it refuses the token that it was just granted/)
    return true
  })
  assert.equal(bench.asked.length, 1)
})

for (const jump of [0, 5 * HOUR, -5 * HOUR])
  test(`after a failure nobody is asked for a minute: time of day set by ${jump}`, async (t) => {
    const bench = await Bench.start(t)
    const clock = new ShiftedClock()
    const server = await bench.open(t, bench.byCode(), { clock })
    bench.valid.clear()
    clock.advance(60_000)
    bench.tokenAnswer = { status: 400, body: { error: 'invalid_request' } }
    const one = await call(server, 'echo')
    clock.shiftMs = jump
    clock.advance(59_999)
    const two = await call(server, 'echo')
    assert.match(one.output, /an access token was refused: status 400, invalid_request/)
    assert.equal(two.output, one.output)
    assert.equal(bench.tokenRequests.length, 2)
    bench.tokenAnswer = null
    clock.advance(1)
    assert.equal((await call(server, 'echo')).output, 'done')
  })

test('the time that a person needs is not that of the handshake', async (t) => {
  const bench = await Bench.start(t)
  const clock = new ManualClock()
  const oauth = bench.byCode()
  const authorize: McpOAuthOptions['authorize'] = async (request) => {
    // Longer than the handshake may take, but not as long as a person may.
    clock.advance(9 * 60_000)
    return (await oauth.authorize?.(request)) ?? ''
  }
  const server = await bench.open(t, { ...oauth, authorize }, { clock })
  assert.equal(server.tools().length, 1)
})

test('a person who does not answer is not waited for longer than ten minutes', async (t) => {
  const bench = await Bench.start(t)
  const clock = new ManualClock()
  const authorize = (): Promise<string> => {
    clock.advance(10 * 60_000)
    return new Promise(() => undefined)
  }
  await assert.rejects(
    bench.open(t, { ...bench.byCode(), authorize }, { clock }),
    /nobody has granted access in time/,
  )
})

type Change = (url: URL, bench: Bench) => unknown
const REDIRECT_URL = String.raw`, which is not oauth\.redirectUrl`

for (const [title, change, says] of [
  [
    'the state of another request',
    ({ searchParams }) => searchParams.set('state', 'x'),
    /belongs to another request/,
  ],
  [
    'the name of another server',
    ({ searchParams }) => searchParams.set('iss', 'https://other.example'),
    /is that of another server/,
  ],
  [
    'an error',
    ({ searchParams }) => searchParams.set('error', 'access_denied'),
    /access was not granted: access_denied/,
  ],
  ['no code', ({ searchParams }) => searchParams.set('code', ''), /has no code/],
  ...['code', 'state'].flatMap((name): (readonly [string, Change, RegExp])[] => [
    [
      `another ${name} behind its own`,
      ({ searchParams }) => searchParams.append(name, 'x'),
      new RegExp(`has ${name} more than once`),
    ],
    [
      `its own ${name} twice`,
      ({ searchParams }) => searchParams.append(name, searchParams.get(name)!),
      new RegExp(`has ${name} more than once`),
    ],
  ]),
  [
    'its issuer twice',
    ({ searchParams }, { origin }) => {
      searchParams.append('iss', origin)
      searchParams.append('iss', 'https://other.example')
    },
    /has iss more than once/,
  ],
  [
    'two errors',
    (url) => (url.search += '&error=&error=access_denied'),
    /has error more than once/,
  ],
  [
    'another host',
    (url) => (url.hostname = 'localhost'),
    new RegExp(`returned http://localhost:7777/callback${REDIRECT_URL}`),
  ],
  [
    'another port',
    (url) => (url.port = '7778'),
    new RegExp(`returned http://127.0.0.1:7778/callback${REDIRECT_URL}`),
  ],
  [
    'another scheme',
    (url) => (url.protocol = 'https:'),
    new RegExp(`returned https://127.0.0.1:7777/callback${REDIRECT_URL}`),
  ],
  [
    'another path',
    (url) => (url.pathname = '/callback/'),
    new RegExp(`returned http://127.0.0.1:7777/callback/${REDIRECT_URL}`),
  ],
] as readonly (readonly [string, Change, RegExp])[]) {
  test(`an answer with ${title} grants nothing`, async (t) => {
    const bench = await Bench.start(t)
    const oauth = bench.byCode({}, (url) => void change(url, bench))
    await assert.rejects(bench.open(t, oauth), (error: Error) => {
      assert.match(error.message, says)
      assert.doesNotMatch(error.message, /code-for-one-use/)
      return true
    })
    assert.equal(bench.tokenRequests.length, 0)
  })
}

test('an answer may have the query of the redirect URL, and parameters of its own', async (t) => {
  const bench = await Bench.start(t)
  const redirectUrl = 'http://127.0.0.1:7777/callback?app=1&app=2'
  const oauth = bench.byCode({ redirectUrl }, ({ searchParams }) => {
    searchParams.append('iss', bench.origin)
    searchParams.append('session_state', 'a')
    searchParams.append('session_state', 'b')
  })
  await bench.open(t, oauth)
  assert.equal(bench.tokenRequests[0]?.['redirect_uri'], redirectUrl)
})

test('errors of authorize and of the store do not pass on what they were given', async (t) => {
  const bench = await Bench.start(t)
  const fails = ({ url = '' }): never => {
    throw new Error(`cannot open ${url}`)
  }
  await assert.rejects(
    bench.open(t, { ...bench.byCode(), authorize: fails }),
    (error: Error) => error.message === 'MCP server guarded: authorize has failed',
  )
  const store = { load: () => null, save: (state: McpOAuthState) => fails({ url: inspect(state) }) }
  await assert.rejects(
    bench.open(t, bench.byCode({ store })),
    (error: Error) => error.message === 'MCP server guarded: the token store has failed',
  )
})

for (const [title, change, says] of [
  [
    'of another resource',
    (bench) => (bench.resourceMetadata = { resource: 'https://other.example/mcp' }),
    /that of another server/,
  ],
  [
    'of a part that is not its own',
    (bench) => (bench.resourceMetadata = { resource: `${bench.origin}/mc` }),
    /that of another server/,
  ],
  [
    'of another authorization server',
    (bench) => (bench.serverMetadata = { issuer: 'https://other.example' }),
    /that of another one/,
  ],
  [
    'without PKCE',
    (bench) => (bench.serverMetadata = { code_challenge_methods_supported: ['plain'] }),
    /does not support codes with PKCE/,
  ],
  [
    'with a page that is no https',
    (bench) => (bench.serverMetadata = { authorization_endpoint: 'javascript:alert(1)' }),
    /authorization_endpoint of the metadata must be an https URL/,
  ],
  [
    'with a token endpoint that is no https',
    (bench) => (bench.serverMetadata = { token_endpoint: 'http://intranet.example/token' }),
    /an access token has an unusable address: it must be https/,
  ],
  [
    'without registration',
    (bench) => (bench.serverMetadata = { registration_endpoint: undefined }),
    /registers no clients: set oauth.clientId/,
  ],
] as readonly (readonly [string, (bench: Bench) => unknown, RegExp])[]) {
  test(`metadata ${title} is refused`, async (t) => {
    const bench = await Bench.start(t)
    change(bench)
    await assert.rejects(bench.open(t, bench.byCode()), says)
    assert.equal(bench.tokenRequests.length, 0)
  })
}

test('the host may pin the authorization server', async (t) => {
  const bench = await Bench.start(t)
  await bench.open(t, bench.byCode({ issuer: bench.origin }))
  await assert.rejects(
    bench.open(t, bench.byCode({ issuer: 'https://mine.example' })),
    /does not name the authorization server of the option oauth.issuer/,
  )
})

for (const [url, near, allowed] of [
  ['https://203.0.114.7/token', 'https://203.0.115.1/mcp', true],
  ['http://203.0.114.7/token', 'https://203.0.115.1/mcp', false],
  ['https://user:pass@203.0.114.7/', 'https://203.0.115.1/mcp', false],
  ['https://169.254.169.254/latest', 'https://203.0.115.1/mcp', false],
  ['https://168.63.129.16/', 'https://203.0.115.1/mcp', false],
  ['https://10.0.0.1/', 'https://203.0.115.1/mcp', false],
  ['https://[::1]/', 'https://203.0.115.1/mcp', false],
  ['https://[::ffff:10.0.0.1]/', 'https://203.0.115.1/mcp', false],
  ['https://localhost/', 'https://203.0.115.1/mcp', false],
  ['http://localhost/', 'https://203.0.115.1/mcp', false],
  ['https://0x7f.1/', 'https://203.0.115.1/mcp', false],
  ['https://10.0.0.1/', 'https://10.0.0.2/mcp', true],
  ['http://10.0.0.1/', 'https://10.0.0.2/mcp', false],
  ['http://localhost:9/token', 'http://127.0.0.1:8/mcp', true],
  ['http://10.0.0.1/', 'http://127.0.0.1:8/mcp', false],
] as const) {
  test(`a server at ${near} may ${allowed ? '' : 'not '}name ${url}`, async () => {
    assert.equal((await refuseUrl(new URL(url), new URL(near))) === null, allowed)
  })
}

const authorize = (): string => ''
const redirectUrl = 'https://app.example/callback'

for (const [oauth, more, says] of [
  [{}, {}, /oauth needs authorize, or clientId, clientSecret and issuer/],
  [{ authorize }, {}, /oauth.redirectUrl is missing/],
  [{ authorize, redirectUrl: 'http://app.example/' }, {}, /oauth.redirectUrl must be an https/],
  [{ authorize, redirectUrl, issuer: 'ftp://x' }, {}, /oauth.issuer must be an https URL/],
  [{ authorize, redirectUrl, clientMetadataUrl: 'https://a.b' }, {}, /clientMetadataUrl must be/],
  [{ clientId: 'a', clientSecret: 'x' }, {}, /oauth.clientSecret needs clientId, and issuer/],
  [{ authorize, redirectUrl, scope: 'x' }, {}, /scope/],
  [{ authorize, redirectUrl }, { url: 'http://a.example/mcp' }, /with oauth, url must be https/],
  [{ authorize, redirectUrl }, { bearer: 'x' }, /give bearer or oauth, not both/],
] as readonly (readonly [object, object, RegExp])[]) {
  test(`invalid OAuth options throw: ${says.source}`, async () => {
    const options = { name: 'a', url: 'https://a.example/mcp', oauth, ...more }
    await assert.rejects(openMcpServer(options as McpServerOptions), (error) => {
      assert.ok(error instanceof TypeError)
      assert.match(error.message, says)
      return true
    })
  })
}
