/**
 * Who may write: every write route, with every pair of the marks that a browser puts on a request:
 * the origin, the site, and the type of a body.
 */
import assert from 'node:assert/strict'
import { Agent, request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { FakeEngine } from '../fake-engine.js'
import { openService } from '../open-service.js'

const ALLOWED = 'https://app.example'
const ORIGINS = [null, 'own', 'https://evil.example', 'null', ALLOWED]
const SITES = [null, 'none', 'same-origin', 'same-site', 'cross-site']
const TYPES: readonly (string | null)[] = [
  null,
  'application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain;charset=UTF-8',
]

interface Sent {
  readonly path: string
  readonly method: string
  readonly origin: string | null
  readonly site: string | null
  readonly type: string | null
}

/** Sends a write on a kept connection; a type is sent with an object, null without a body. */
function send(agent: Agent, port: number, { path, method, origin, site, type }: Sent) {
  const own = `http://127.0.0.1:${port}`
  const headers = {
    ...(origin === null ? {} : { origin: origin === 'own' ? own : origin }),
    ...(site === null ? {} : { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' }),
    ...(type === null ? {} : { 'content-type': type, 'content-length': 2 }),
  }
  return new Promise<{ status: number; code: unknown }>((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', path, method, headers, agent })
    request.on('error', reject).on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => {
        const code: unknown = text === '' ? undefined : JSON.parse(text).code
        resolve({ status: response.statusCode ?? 0, code })
      })
    })
    request.end(type === null ? undefined : '{}')
  })
}

/** The answer that a write must get; null when the route decides. */
function refusalOf({ origin, site, type, method }: Sent): { status: number; code: string } | null {
  const isElsewhere = site === 'same-site' || site === 'cross-site'
  const isOwn = origin === null || origin === 'own'
  if (origin !== ALLOWED && (!isOwn || isElsewhere)) {
    return { status: 403, code: 'forbidden_origin' }
  }
  if (type === null || type === 'application/json' || method === 'DELETE') return null
  return { status: 415, code: 'unsupported_media_type' }
}

for (const guard of ['without authorize', 'with authorize'] as const) {
  test(`${guard} no write of a page elsewhere reaches the engine, on any route`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({
      engine,
      allowedOrigins: [ALLOWED],
      ...(guard === 'with authorize' ? { authorize: () => ({ id: 'ann' }) } : {}),
    })
    const { paths } = (await opened.call('GET', '/api/openapi.json')).json as {
      paths: Record<string, Record<string, unknown>>
    }
    const routes = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item)
        .filter((method) => /^(post|put|patch|delete)$/.test(method))
        .map((method) => ({ path, method: method.toUpperCase() })),
    )
    assert.ok(routes.length >= 5, 'create, resume, abort, retry, delete, and later ones')
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (const route of routes) {
      const path = route.path.replace('{run_id}', engine.add())
      for (const [row, origin] of ORIGINS.entries()) {
        for (const [column, site] of SITES.entries()) {
          engine.calls.length = 0
          // A Latin square: each type meets each origin and each site.
          const sent = { ...route, path, origin, site, type: TYPES[(row + column) % 5] ?? null }
          const answer = await send(agent, opened.port, sent)
          const refusal = refusalOf(sent)
          if (refusal === null) assert.ok(![403, 415].includes(answer.status), JSON.stringify(sent))
          else {
            assert.deepEqual(answer, refusal, JSON.stringify(sent))
            assert.deepEqual(engine.calls, [], JSON.stringify(sent))
          }
        }
      }
    }
    agent.destroy()
  })
}
