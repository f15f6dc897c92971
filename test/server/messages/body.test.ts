import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createRunService } from 'runwright/server'
import { RawPeer } from '../../helpers/raw-peer.js'
import { listen } from '../../helpers/serve.js'
import { call, openService, type CallOptions } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

const json = { 'content-type': 'application/json' }

for (const { name, body, headers, status, code } of [
  { name: 'half a document', body: '{"goal":', headers: json, status: 400, code: 'bad_json' },
  { name: 'plain words', body: 'goal', headers: json, status: 400, code: 'bad_json' },
  {
    name: 'bytes that are not UTF-8',
    body: Buffer.from('{"goal":"\xff"}', 'latin1'),
    headers: json,
    status: 400,
    code: 'bad_json',
  },
  {
    name: 'a field that occurs twice',
    body: '{"goal":"x","hitl_enabled":true,"hitl_enabled":false}',
    headers: json,
    status: 400,
    code: 'bad_json',
  },
  {
    name: 'arrays in arrays, as deep as the body is long',
    body: '['.repeat(500_000) + ']'.repeat(500_000),
    headers: json,
    status: 400,
    code: 'bad_json',
  },
  {
    name: 'a form',
    body: 'goal=x',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'JSON sent as text',
    body: '{"goal":"x"}',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'JSON without a type',
    body: '{"goal":"x"}',
    headers: {},
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'JSON in another charset',
    body: '{"goal":"x"}',
    headers: { 'content-type': 'application/json; charset=latin1' },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'a JSON dialect',
    body: '{"goal":"x"}',
    headers: { 'content-type': 'application/json5' },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'a compressed body',
    body: '{"goal":"x"}',
    headers: { ...json, 'content-encoding': 'gzip' },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'a declared length over the limit',
    body: '',
    headers: { ...json, 'content-length': '1048577' },
    status: 413,
    code: 'body_too_large',
  },
] as {
  name: string
  body: string | Buffer
  headers: Record<string, string>
  status: number
  code: string
}[]) {
  test(`${name} as a start request is ${status} ${code}`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({ engine })
    const answer = await opened.call('POST', '/api/runs', { body, headers } as CallOptions)
    assert.equal(answer.status, status)
    assert.equal(answer.json.code, code)
    assert.equal(answer.headers['content-type'], 'application/problem+json')
    assert.deepEqual(engine.calls, [])
  })
}

for (const type of [
  'application/json',
  'Application/JSON',
  'application/json; charset=utf-8',
  'application/json;charset="UTF-8"',
  'application/json; charset=utf8; x=y',
]) {
  test(`a body of type ${type} is accepted`, async () => {
    await using opened = await openService()
    const answer = await opened.call('POST', '/api/runs', {
      body: '{"goal":"x"}',
      headers: { 'content-type': type },
    })
    assert.equal(answer.status, 201)
  })
}

test('a body that exceeds the limit while it is sent is cut off', async () => {
  await using opened = await openService({ maxBodyBytes: 1000 })
  using peer = await RawPeer.connect(opened.port)
  peer.write(
    'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  peer.write(`3e8\r\n${' '.repeat(1000)}\r\n`)
  peer.write('1\r\n \r\n')
  const head = await peer.takeUntil('\r\n\r\n')
  assert.match(head, /^HTTP\/1\.1 413 /)
  assert.match(head, /connection: close/i)
})

test('a body in more chunks than its bytes explain is cut off', async () => {
  await using opened = await openService()
  using peer = await RawPeer.connect(opened.port)
  peer.write(
    'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  peer.write('1\r\n \r\n'.repeat(5_000))
  const head = await peer.takeUntil('\r\n\r\n')
  assert.match(head, /^HTTP\/1\.1 400 /)
  assert.match(head, /connection: close/i)
})

test('a value is as deep as any that a tool takes, and the fields around it', async () => {
  await using opened = await openService()
  const args = '['.repeat(64) + ']'.repeat(64)
  const body = `{"decision":"approve","edits":[{"call_id":"a","args":{"a":${args}}}]}`
  const path = `/api/runs/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}/resume`
  const answer = await opened.call('POST', path, { body, headers: json })
  assert.notEqual(answer.json.code, 'bad_json')
})

test('a body of exactly the limit is accepted', async () => {
  await using opened = await openService({ maxBodyBytes: 1000 })
  const body = `{"goal":"${'x'.repeat(1000 - 11)}"}`
  assert.equal(Buffer.byteLength(body), 1000)
  assert.equal((await opened.call('POST', '/api/runs', { body, headers: json })).status, 201)
})

test('an error in a document is reported by its position, never by quoting it', async () => {
  await using opened = await openService()
  const answer = await opened.call('POST', '/api/runs', { body: '{"goal": secret}', headers: json })
  assert.equal(answer.status, 400)
  assert.doesNotMatch(answer.text, /secret/)
})

test('a client that disconnects in the middle of its body does no harm', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  const peer = await RawPeer.connect(opened.port)
  peer.write(
    'POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"goal"',
  )
  peer.reset()
  assert.equal((await opened.call('GET', '/api/runs')).status, 200)
  assert.deepEqual(
    engine.calls.map(([name]) => name),
    ['list'],
  )
  assert.deepEqual(opened.errors, [])
})

for (const action of ['abort', 'retry', 'resume']) {
  test(`a form cannot ${action} a run, nor can a body without a type`, async () => {
    const engine = new FakeEngine()
    const path = `/api/runs/${engine.add()}/${action}`
    await using opened = await openService({ engine })
    for (const type of [
      'Content-Type: application/x-www-form-urlencoded',
      'Content-Type: multipart/form-data; boundary=x',
      'Content-Type: text/plain',
      'Content-Encoding: gzip',
      'X-Type: application/json',
    ]) {
      for (const framed of [
        'Content-Length: 2\r\n\r\n{}',
        'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
      ]) {
        const sent = await post(opened.port, path, `${type}\r\n${framed}`)
        assert.match(sent, /^HTTP\/1\.1 415 /, `${type} ${framed}`)
      }
    }
    assert.deepEqual(engine.calls, [])
  })
}

async function post(port: number, path: string, rest: string): Promise<string> {
  using peer = await RawPeer.connect(port)
  peer.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${rest}`)
  return await peer.takeUntil('\r\n\r\n')
}

/** How clients send a POST without a body. */
const EMPTY: Readonly<Record<string, string>> = {
  'no length': '\r\n',
  'a length of 0': 'Content-Length: 0\r\n\r\n',
  'no chunks': 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a form of length 0':
    'Content-Length: 0\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n',
  'a text of no chunks':
    'Content-Type: text/plain;charset=UTF-8\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'JSON of length 0': 'Content-Type: application/json\r\nContent-Length: 0\r\n\r\n',
}

for (const [how, rest] of Object.entries(EMPTY)) {
  test(`a write without a body, sent with ${how}, needs no content type`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({ engine })
    for (const [action, status] of [
      ['abort', 202],
      ['retry', 201],
      ['resume', 422],
    ] as const) {
      const head = await post(opened.port, `/api/runs/${engine.add()}/${action}`, rest)
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), action)
    }
    assert.match(await post(opened.port, '/api/runs', rest), /^HTTP\/1\.1 422 /)
    assert.deepEqual(
      engine.calls.map(([name]) => name),
      ['abort', 'retry', 'create'],
    )
    const ended = engine.add()
    engine.finish(ended)
    assert.equal((await opened.call('DELETE', `/api/runs/${ended}`)).status, 204)
  })
}

test('over HTTP/2 a write without a body needs no content type', async () => {
  const engine = new FakeEngine()
  const service = await createRunService({ engine })
  const server = createHttp2Server(service.handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const send = async (endStream: boolean, body = ''): Promise<unknown> => {
    const path = `/api/runs/${engine.add()}/abort`
    const stream = client.request({ ':method': 'POST', ':path': path }, { endStream })
    if (!endStream) stream.end(body)
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    stream.resume()
    return headers[':status']
  }
  assert.deepEqual([await send(true), await send(false), await send(false, '{}')], [202, 202, 415])
  client.destroy()
  server.close()
  await service.close()
})

test('a body parser in front changes nothing for a write without a body', async () => {
  const engine = new FakeEngine()
  const service = await createRunService({ engine })
  // As express.json() and express.urlencoded() of both versions leave it behind.
  for (const body of [{}, undefined, '', Buffer.alloc(0)]) {
    await using served = await listen(
      createServer((request: IncomingMessage & { body?: unknown }, response) => {
        request.resume().on('end', () => {
          request.body = body
          service.handler(request, response)
        })
      }),
    )
    const path = `/api/runs/${engine.add()}/abort`
    for (const rest of Object.values(EMPTY).filter((one) => !one.includes('chunked'))) {
      assert.match(await post(served.port, path, rest), /^HTTP\/1\.1 20[02] /)
    }
    const form = 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n\r\n{}'
    assert.match(await post(served.port, path, form), /^HTTP\/1\.1 415 /)
  }
  await service.close()
})

for (const { name, parse } of [
  { name: 'a value', parse: (text: string): unknown => JSON.parse(text) },
  { name: 'text', parse: (text: string): unknown => text },
  { name: 'bytes', parse: (text: string): unknown => Buffer.from(text) },
]) {
  test(`a body that a framework has already read, into ${name}, is used`, async () => {
    const service = await createRunService({ engine: new FakeEngine() })
    await using served = await listen(
      createServer((request: IncomingMessage & { body?: unknown }, response) => {
        const chunks: Buffer[] = []
        request.on('data', (chunk: Buffer) => chunks.push(chunk))
        request.on('end', () => {
          request.body = parse(Buffer.concat(chunks).toString())
          service.handler(request, response)
        })
      }),
    )
    assert.equal(
      (await call(served.port, 'POST', '/api/runs', { body: { goal: 'x' } })).status,
      201,
    )
    assert.equal((await call(served.port, 'POST', '/api/runs', { body: { goal: 1 } })).status, 422)
    await service.close()
  })
}

test('a body that was read and discarded is reported to the host, not waited for', async () => {
  const errors: unknown[] = []
  const service = await createRunService({
    engine: new FakeEngine(),
    onError: (error) => errors.push(error),
  })
  await using served = await listen(
    createServer((request, response) => {
      request.resume().on('end', () => service.handler(request, response))
    }),
  )
  assert.equal((await call(served.port, 'POST', '/api/runs', { body: { goal: 'x' } })).status, 500)
  assert.match(String(errors[0]), /mount the service before body parsers/)
  await service.close()
})
