/** The service in every kind of host: at its root, under a prefix, and beside another service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { createRunService, type RunService } from 'runwright/server'
import { WebSocket, WebSocketServer } from 'ws'
import { testProvider } from '../../helpers/engine.js'
import { HELLO, HOSTS, originOf, type Host, type Mount, type OpenHost } from './hosts.js'
import { clientOf, prove } from './proof.js'

async function mountAt(t: TestContext, basePath: string): Promise<Mount> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-mount-')))
  const service: RunService = await createRunService({
    basePath,
    engine: {
      store: new MemoryStore(),
      roots: [root],
      cwdPolicy: 'allow',
      providers: [testProvider(() => ({ text: 'nothing to do' }))],
      defaultModel: 'test:m',
    },
  })
  t.after(async () => {
    await service.close({ graceMs: 0 })
    rmSync(root, { recursive: true, force: true })
  })
  return { service, basePath }
}

async function openHost(t: TestContext, host: Host, mounts: readonly Mount[]): Promise<OpenHost> {
  const open = await host.open(mounts)
  t.after(async () => {
    await Promise.all(mounts.map(({ service }) => service.close({ graceMs: 0 })))
    await open.close()
  })
  return open
}

/** A WebSocket server of the host's own, which echoes. */
function chat(open: OpenHost): void {
  const server = new WebSocketServer({ server: open.server, path: '/chat' })
  server.on('connection', (socket) => socket.on('message', (data) => socket.send(String(data))))
}

async function assertChats(origin: string): Promise<void> {
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/chat`, {
    rejectUnauthorized: false,
  })
  socket.on('open', () => socket.send('are you there?'))
  const [answer] = (await once(socket, 'message')) as [Buffer]
  assert.equal(String(answer), 'are you there?')
  socket.close()
  await once(socket, 'close')
}

const WORK = { goal: 'shell: test -e never', gated: true }

for (const host of HOSTS) {
  for (const basePath of ['', '/team/agents']) {
    for (const version of host.versions) {
      const where = basePath === '' ? 'at the root' : `below ${basePath}`
      test(`${host.name}: mounted ${where} everything works over HTTP/${version}`, async (t) => {
        const mount = await mountAt(t, basePath)
        const open = await openHost(t, host, [mount])
        mount.service.attach(open.server)
        await prove(`${originOf(host, open)}${basePath}`, version, WORK)
      })
    }
  }

  test(`${host.name}: two services beside the pages and sockets of the host`, async (t) => {
    const mounts = [await mountAt(t, '/one'), await mountAt(t, '/two')]
    const open = await openHost(t, host, mounts)
    const version = host.versions[0]!
    // `ws` with its options `server` and `path` refuses upgrades of every other path.
    mounts[0]!.service.attach(open.server)
    if (version === 1) chat(open)
    mounts[1]!.service.attach(open.server)
    const origin = originOf(host, open)
    if (version === 1) await assertChats(origin)
    for (const { basePath } of mounts) await prove(`${origin}${basePath}`, version, WORK)
    if (version === 1) await assertChats(origin)
    const client = clientOf(origin, version)
    t.after(() => client.close())
    assert.equal((await client.get('/hello')).text, HELLO)
    for (const path of ['/', '/api/runs', '/three/api/runs', '/onea/api/runs']) {
      const answer = await client.get(path)
      assert.equal(answer.statusCode, 404, path)
      assert.doesNotMatch(String(answer.headers.get('content-type')), /problem/, path)
    }
    const [first, second] = await Promise.all(
      mounts.map(async ({ basePath }) => (await client.get(`${basePath}/api/runs`)).json()),
    )
    assert.notDeepEqual(first, second)
  })
}

test('a host that is closed after the service lets its process exit', async (t) => {
  const host = HOSTS[0]!
  const mount = await mountAt(t, '')
  const open = await host.open([mount])
  mount.service.attach(open.server)
  const { port } = open.server.address() as AddressInfo
  const client = clientOf(`http://127.0.0.1:${port}`, 1)
  await client.get('/api/health')
  await mount.service.close({ graceMs: 0 })
  await client.close()
  open.close()
  await once(open.server, 'close')
})
