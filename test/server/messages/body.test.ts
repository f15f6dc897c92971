import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
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
  test(`a form cannot ${action} a run, nor can a request without a type`, async () => {
    const engine = new FakeEngine()
    const path = `/api/runs/${engine.add()}/${action}`
    await using opened = await openService({ engine })
    for (const type of [
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain',
    ]) {
      const answer = await opened.call('POST', path, {
        body: 'a=b',
        headers: { 'content-type': type },
      })
      assert.equal(answer.status, 415)
    }
    using peer = await RawPeer.connect(opened.port)
    peer.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    )
    assert.match((await peer.takeAll()).toString(), /^HTTP\/1\.1 415 /)
    assert.deepEqual(engine.calls, [])
  })
}

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
