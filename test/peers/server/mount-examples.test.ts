/** The mounting examples, run unchanged. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { programAt } from '../../helpers/programs.js'
import { clientOf, prove } from './proof.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const fixture = (name: string): string => join(root, 'test/fixtures/ws', name)
const examples = readdirSync(join(root, 'examples/mounts')).filter((name) => name.endsWith('.ts'))

for (const example of examples) {
  test(`examples/mounts/${example} serves the service and ends on SIGTERM`, async (t) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-mount-')))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const child = spawn(process.execPath, programAt(`examples/mounts/${example}`), {
      cwd: folder,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: folder,
        PORT: '0',
        TLS_KEY: fixture('localhost.key'),
        TLS_CERT: fixture('localhost.crt'),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.after(() => child.kill('SIGKILL'))
    const closed = once(child, 'close')
    const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
    const base = /^https?:\/\/127\.0\.0\.1:\d+\/agents(?=\/\n$)/.exec(line)?.[0]
    assert.ok(base !== undefined, `it printed ${JSON.stringify(line)}`)
    for (const version of example === 'node-http2.ts' ? ([1, 2] as const) : ([1] as const)) {
      await prove(base, version, { goal: 'shell: true', gated: false })
      const client = clientOf(new URL(base).origin, version)
      assert.equal((await client.get('/hello')).text, 'hello from the host')
      assert.equal((await client.get('/nothing')).statusCode, 404)
      await client.close()
    }
    child.kill('SIGTERM')
    assert.deepEqual(await closed, [0, null])
  })
}

test('there is an example for every kind of host', () => {
  assert.deepEqual(examples.sort(), [
    'express.ts',
    'fastify.ts',
    'hono.ts',
    'koa.ts',
    'nest.ts',
    'node-http.ts',
    'node-http2.ts',
    'node-https.ts',
  ])
})
