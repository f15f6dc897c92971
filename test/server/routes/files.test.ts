import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { test } from 'node:test'
import { CheckpointError, WorkspaceError } from 'runwright/agent'
import { FakeEngine } from '../fake-engine.js'
import { NEWEST, START } from '../fake-workspaces.js'
import { openService } from '../open-service.js'

test('a folder is listed, a file is bytes', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}/files`
  const root = await opened.call('GET', `${path}?at=start`)
  assert.deepEqual([root.status, root.json.at], [200, START])
  const folder = await opened.call('GET', `${path}/src`)
  assert.deepEqual(
    [folder.json.path, folder.json.at, folder.json.entries[0].path],
    ['src', NEWEST, 'src/main.js'],
  )
  const file = await opened.call('GET', `${path}/src/main.js?at=now`)
  assert.deepEqual([file.status, file.text], [200, 'console.log(1)\n'])
})

test('a folder is JSON only, and a file bytes only', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  for (const [path, accept, status] of [
    ['src', 'application/json', 200],
    ['src', 'application/octet-stream', 406],
    ['readme.md', 'application/json', 406],
    ['readme.md', 'application/octet-stream', 200],
    ['readme.md', 'application/json, */*;q=0.1', 200],
    ['readme.md', 'image/png', 406],
  ] as const) {
    const headers = { accept }
    const answer = await opened.call('GET', `/api/runs/${run}/files/${path}`, { headers })
    assert.equal(answer.status, status, `${path} as ${accept}`)
  }
})

test('a file is for download only, whatever it holds', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  const content = Buffer.from('<script>alert(1)</script>')
  engine.workspaces.files.set('a/"é\n.html', content)
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}/files/a/%22%C3%A9%0A.html`
  const { status, headers } = await opened.call('GET', path)
  assert.equal(status, 200)
  const sha256 = createHash('sha256').update(content).digest('hex')
  assert.deepEqual(
    [
      headers['content-type'],
      headers['x-content-type-options'],
      headers['content-disposition'],
      headers['content-security-policy'],
      headers['cache-control'],
      headers['content-length'],
      headers.etag,
    ],
    [
      'application/octet-stream',
      'nosniff',
      `attachment; filename="___.html"; filename*=UTF-8''%22%C3%A9%0A.html`,
      "default-src 'none'; sandbox",
      'private, no-cache',
      String(content.length),
      `"${sha256}"`,
    ],
  )
  const again = await opened.call('GET', path, { headers: { 'if-none-match': headers.etag! } })
  assert.deepEqual([again.status, again.text], [304, ''])
  const other = await opened.call('GET', path, { headers: { 'if-none-match': '"x"' } })
  assert.equal(other.status, 200)
  const head = await opened.call('HEAD', path)
  assert.deepEqual([head.status, head.text, head.headers.etag], [200, '', headers.etag])
})

test('a name that is not UTF-8 is sent byte by byte, and shown as lone surrogates', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.workspaces.files.set('d/a\udcff', Buffer.from('x'))
  await using opened = await openService({ engine })
  const folder = await opened.call('GET', `/api/runs/${run}/files/d`)
  assert.match(folder.text, /"d\/a\\udcff"/)
  assert.equal((await opened.call('GET', `/api/runs/${run}/files/d/a%FF`)).text, 'x')
})

for (const { path, status, code } of [
  { path: 'nothing', status: 404, code: 'file_not_found' },
  { path: 'src/nothing', status: 404, code: 'file_not_found' },
  { path: 'outside', status: 422, code: 'invalid_request' },
  { path: '%2e%2e/etc', status: 422, code: 'invalid_request' },
  { path: '..%2fetc', status: 422, code: 'invalid_request' },
  { path: 'a%00', status: 422, code: 'invalid_request' },
  { path: 'src/', status: 422, code: 'invalid_request' },
  { path: 'src//main.js', status: 422, code: 'invalid_request' },
  { path: 'readme.md?at=never', status: 404, code: 'checkpoint_not_found' },
  { path: 'readme.md?att=now', status: 422, code: 'invalid_request' },
]) {
  test(`files/${path} is answered with ${status} ${code}`, async () => {
    const engine = new FakeEngine()
    const run = engine.add()
    await using opened = await openService({ engine })
    const answer = await opened.call('GET', `/api/runs/${run}/files/${path}`)
    assert.deepEqual([answer.status, answer.json.code], [status, code])
    if (status === 422 && !path.includes('?')) {
      assert.deepEqual([answer.json.errors[0].pointer, answer.json.errors[0].in], ['/path', 'path'])
    }
    assert.deepEqual(opened.errors, [])
  })
}

test('errors of the folder and of contents are no unknown files', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  await using opened = await openService({ engine })
  for (const [error, status, code] of [
    [new WorkspaceError('ERR_AGENT_WORKSPACE_LOST', 'gone'), 409, 'workspace_lost'],
    [new CheckpointError('not_kept', 'too large', ['a']), 410, 'content_not_kept'],
    [new CheckpointError('unsupported', 'not here'), 501, 'unsupported'],
  ] as const) {
    engine.failure = error
    const answer = await opened.call('GET', `/api/runs/${run}/files/readme.md`)
    assert.deepEqual([answer.status, answer.json.code], [status, code])
  }
})

const large = Buffer.alloc(16 * 1024 * 1024, 'runwright ')

test('a large file arrives whole', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.workspaces.files.set('large', large)
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}/files/large`
  const { status, headers, text } = await opened.call('GET', path)
  assert.deepEqual([status, headers['content-length']], [200, String(large.length)])
  assert.equal(text, large.toString())
})

test('a reader that takes nothing of a large file is disconnected', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.workspaces.files.set('large', large)
  await using opened = await openService({ engine, streams: { stuckMs: 50 } })
  const path = `/api/runs/${run}/files/large`
  const socket = connect(opened.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  // The reply is cut although the reader would wait for ever.
  for (;;) {
    const open = await new Promise<number>((resolve) => {
      opened.served.server.getConnections((_, count) => resolve(count))
    })
    if (open === 0) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.destroy()
})
