import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createRunService } from 'runwright/server'
import { targetOf } from '../../../lib/server/messages/request-target.js'
import { RawPeer } from '../../helpers/raw-peer.js'
import { listen, serve } from '../../helpers/serve.js'
import { call, openService, SocketClient } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

for (const { url, original, basePath = '', path, query = '' } of [
  { url: '/api/runs', path: '/api/runs' },
  { url: '/api/runs?a=b?c', path: '/api/runs', query: 'a=b?c' },
  { url: '/api/runs#x?y', path: '/api/runs' },
  { url: '/', path: '/' },
  { url: '*', path: null },
  { url: 'http://host:80/api/runs?x', path: '/api/runs', query: 'x' },
  { url: '/agents/api/runs', basePath: '/agents', path: '/api/runs' },
  { url: '/agents', basePath: '/agents', path: '' },
  { url: '/agents?x=1', basePath: '/agents', path: '', query: 'x=1' },
  { url: '/agents/', basePath: '/agents', path: '/' },
  { url: '/agentsmith', basePath: '/agents', path: null },
  { url: '/api/runs', basePath: '/agents', path: null },
  { url: '/Agents/api', basePath: '/agents', path: null },
  {
    url: '/api/runs?x',
    original: '/agents/api/runs?x',
    basePath: '/agents',
    path: '/api/runs',
    query: 'x',
  },
  { url: '/', original: '/agents', basePath: '/agents', path: '' },
  { url: '/', original: '/agents/', basePath: '/agents', path: '/' },
  { url: '/?x', original: '/agents?x', basePath: '/agents', path: '', query: 'x' },
  { url: '/api', original: '/a/b/api', basePath: '/a/b', path: '/api' },
  { url: '/api/runs', original: '/api/runs', path: '/api/runs' },
  { url: '/agents/api', original: '/agents/api', basePath: '/agents', path: '/api' },
] as { url: string; original?: string; basePath?: string; path: string | null; query?: string }[]) {
  test(`${url} (of ${original ?? 'no mount'}) below "${basePath}" is ${path}`, () => {
    const request = { url, ...(original === undefined ? {} : { originalUrl: original }) }
    assert.deepEqual(targetOf(request, basePath), path === null ? null : { path, query })
  })
}

for (const { url, original, basePath, mount } of [
  { url: '/api/runs', original: '/agents/api/runs', basePath: '', mount: '/agents' },
  { url: '/api/runs', original: '/other/api/runs', basePath: '/agents', mount: '/other' },
  { url: '/x/api/runs', original: '/agents/x/api/runs', basePath: '/agents/x', mount: '/agents' },
]) {
  test(`mounted at ${mount} with basePath "${basePath}" is reported as a mistake`, () => {
    assert.throws(() => targetOf({ url, originalUrl: original } as { url: string }, basePath), {
      status: 500,
      code: 'mount_mismatch',
      message:
        `the service is mounted at "${mount}" but was created with basePath "${basePath}"; ` +
        'make them the same',
    })
  })
}

test('under a prefix links, the dashboard and the streams have the prefix', async () => {
  const engine = new FakeEngine()
  for (let i = 0; i < 3; i++) engine.add()
  await using opened = await openService({ engine, basePath: '/team/agents' })
  const created = await opened.call('POST', '/team/agents/api/runs', { body: { goal: 'x' } })
  assert.equal(created.headers.location, `/team/agents/api/runs/${created.json.run_id}`)
  const list = await opened.call('GET', '/team/agents/api/runs?limit=2')
  assert.match(
    String(list.headers['link']),
    /^<\/team\/agents\/api\/runs\?limit=2&cursor=2>; rel="next"$/,
  )
  const bare = await opened.call('GET', '/team/agents')
  assert.deepEqual([bare.status, bare.headers.location], [308, '/team/agents/'])
  assert.equal((await opened.call('GET', '/api/runs')).status, 404)
  using client = await opened.socket(`/team/agents/api/ws/${created.json.run_id}`)
  assert.equal(client.status, 101)
  const description = (await opened.call('GET', '/team/agents/api/openapi.json')).json
  assert.deepEqual(description.servers, [{ url: '/team/agents' }])
})

test('a Connect-style mount is routed by originalUrl, the whole path', async () => {
  const engine = new FakeEngine()
  const service = await createRunService({ engine, basePath: '/agents' })
  await using served = await serve((request, response) => {
    const mounted = request as IncomingMessage & { originalUrl?: string }
    mounted.originalUrl = request.url!
    request.url = request.url!.slice('/agents'.length) || '/'
    service.handler(mounted, response, () => response.writeHead(418).end())
  })
  const created = await call(served.port, 'POST', '/agents/api/runs', { body: { goal: 'x' } })
  assert.equal(created.status, 201)
  assert.equal((await call(served.port, 'GET', created.headers.location!)).status, 200)
  assert.equal((await call(served.port, 'GET', '/agents/elsewhere')).status, 418)
  await service.close()
})

test('other paths go to next, and an error in it is not caught', async () => {
  const service = await createRunService({ engine: new FakeEngine(), dashboard: false })
  await using served = await serve((request, response) => {
    service.handler(request, response, () => response.writeHead(200).end(`theirs ${request.url}`))
  })
  for (const path of ['/', '/api/users', '/api/runs/', '/favicon.ico', '/runwright/app.js']) {
    assert.equal((await call(served.port, 'GET', path)).text, `theirs ${path}`)
  }
  assert.equal((await call(served.port, 'GET', '/api/runs')).status, 200)
  assert.equal((await call(served.port, 'PUT', '/api/runs')).status, 405)
  await service.close()
})

test('two services share a server, and leave other upgrades alone', async () => {
  const engines = [new FakeEngine(), new FakeEngine()]
  const [first, second] = await Promise.all([
    createRunService({ engine: engines[0]!, basePath: '/one' }),
    createRunService({ engine: engines[1]!, basePath: '/two' }),
  ])
  await using served = await listen(
    createServer((request, response) => {
      first.handler(request, response, () => second.handler(request, response))
    }),
  )
  first.attach(served.server)
  second.attach(served.server)
  served.server.on('upgrade', (request, socket) => {
    if (request.url === '/theirs') socket.end('HTTP/1.1 204 No Content\r\n\r\n')
  })
  const runId = engines[1]!.add()
  engines[1]!.log(runId, 3)
  assert.equal((await call(served.port, 'GET', `/two/api/runs/${runId}`)).status, 200)
  assert.equal((await call(served.port, 'GET', `/one/api/runs/${runId}`)).status, 404)
  using ours = await SocketClient.connect(served.port, `/two/api/ws/${runId}`)
  assert.equal(ours.status, 101)
  using wrong = await SocketClient.connect(served.port, `/one/api/ws/${runId}`)
  assert.equal(wrong.status, 404)
  using theirs = await SocketClient.connect(served.port, '/theirs')
  assert.equal(theirs.status, 204)
  await served.close()
  await Promise.all([first.close(), second.close()])
})

test('an upgrade handed over by the host for another path is answered with 404', async () => {
  const service = await createRunService({ engine: new FakeEngine() })
  await using served = await serve(service.handler)
  served.server.on('upgrade', service.upgrade)
  using client = await SocketClient.connect(served.port, '/elsewhere')
  assert.equal(client.status, 404)
  assert.equal((await client.problem()).code, 'not_found')
  await service.close()
})

test('with authorize a request target may have a scheme and host; without, it is refused', async () => {
  await using open = await openService({ authorize: () => ({ id: 'ann' }) })
  const ask = async (port: number, path: string, host: string): Promise<string> => {
    using peer = await RawPeer.connect(port)
    peer.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    return await peer.takeUntil('\r\n\r\n')
  }
  const target = 'http://evil.example/api/runs'
  assert.match(await ask(open.port, target, 'agents.example'), /^HTTP\/1\.1 200 /)
  await using local = await openService()
  assert.match(await ask(local.port, target, 'localhost'), /^HTTP\/1\.1 403 /)
  assert.match(await ask(local.port, 'http://localhost/api/runs', 'localhost'), /^HTTP\/1\.1 403 /)
  assert.match(await ask(local.port, '/api/runs', 'localhost'), /^HTTP\/1\.1 200 /)
})
