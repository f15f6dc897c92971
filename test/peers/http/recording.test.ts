import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import draft6 from 'ajv/dist/refs/json-schema-draft-06.json' with { type: 'json' }
import { createRequire } from 'node:module'
import {
  AsyncClient,
  MockTransport,
  ReadTimeoutError,
  RecordingTransport,
  Response,
} from 'runwright/http'
import { openBrowser } from '../server/browser.js'

const folder = mkdtempSync(join(tmpdir(), 'runwright-har-peers-'))
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url!, 'http://a.test')
  if (pathname === '/') {
    response.setHeader('Content-Type', 'text/html')
    response.end('<title>page</title>')
    return
  }
  if (pathname === '/moved') {
    response.writeHead(302, { Location: '/json', 'Set-Cookie': ['a=1; Path=/', 'b=2; HttpOnly'] })
    response.end()
    return
  }
  if (pathname === '/binary') {
    response.setHeader('Content-Type', 'image/png')
    response.end(Buffer.from([0x89, 0x50, 0xff, 0]))
    return
  }
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' })
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    response.end(gzipSync(JSON.stringify({ method: request.method, body, text: 'hällo' })))
  })
})
let origin = ''
before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

/** What is wrong with a HAR file according to npm's har-schema. */
function problemsOf(file: string): unknown {
  const schemas = createRequire(import.meta.url)('har-schema') as Record<string, object>
  const ajv = new Ajv({ strict: false })
  formats.default(ajv)
  ajv.addMetaSchema(draft6)
  for (const schema of Object.values(schemas)) ajv.addSchema(schema)
  const validate = ajv.getSchema('har.json#')!
  const valid = validate(JSON.parse(readFileSync(file, 'utf8')))
  return valid === true ? null : validate.errors
}

test('what is recorded is valid by har-schema, and a schema error is found', async () => {
  const file = join(folder, 'own.har')
  const recording = new RecordingTransport({ file })
  await using client = new AsyncClient({
    transport: recording,
    baseUrl: origin,
    followRedirects: true,
  })
  await client.get('/json?token=abc&q=%5B&q=2', { headers: { Authorization: 'Bearer x' } })
  await client.post('/json', { json: { password: 'x' } })
  await client.post('/json', { data: { a: 'b c' } })
  await client.post('/json', { files: { f: ['a.png', Buffer.from([255, 0])] } })
  await client.get('/moved')
  await client.get('/binary')
  await recording.close()
  const failing = new RecordingTransport({
    file,
    transport: new MockTransport(({ url }) => {
      if (url.pathname === '/late') throw new ReadTimeoutError('late', 5)
      return new Response(200)
    }),
  })
  await using late = new AsyncClient({ transport: failing })
  await assert.rejects(late.get('http://a.test/late'), ReadTimeoutError)
  await late.get('http://a.test/[secret]?q=[secret]')
  await failing.close()
  assert.deepEqual(problemsOf(file), null)
  writeFileSync(file, readFileSync(file, 'utf8').replace('"cache"', '"cash"'))
  assert.notEqual(problemsOf(file), null)
})

test('Chromium plays a recording, and a recording of Chromium is replayed', async (t) => {
  const file = join(folder, 'browser.har')
  const own = join(folder, 'for-browser.har')
  const context = await openBrowser(t, { recordHar: { path: file, content: 'embed' } })
  const page = await context.newPage()
  await page.goto(`${origin}/`)
  const post = `fetch('/json', { method: 'POST', body: JSON.stringify({ n: 1 }) }).then((r) => r.text())`
  const posted = await page.evaluate(post)
  await page.evaluate(`fetch('/moved').then((r) => r.text())`)
  await page.evaluate(`fetch('/binary').then((r) => r.arrayBuffer())`)
  await context.close()
  assert.deepEqual(problemsOf(file), null)

  const replay = new RecordingTransport({ file, mode: 'replay' })
  await using client = new AsyncClient({
    transport: replay,
    baseUrl: origin,
    followRedirects: true,
  })
  assert.equal((await client.get('/')).text, '<title>page</title>')
  const content = JSON.stringify({ n: 1 })
  assert.equal((await client.post('/json', { content })).text, posted)
  const moved = await client.get('/moved')
  assert.equal(moved.json<{ text: string }>().text, 'hällo')
  assert.deepEqual([...client.cookies].map(({ name }) => name).sort(), ['a', 'b'])
  assert.deepEqual([...(await client.get('/binary')).content], [0x89, 0x50, 0xff, 0])
  replay.close()

  const url = 'http://recorded.test/'
  const mock = new RecordingTransport({
    file: own,
    transport: new MockTransport(() => new Response(200, { html: '<title>recorded hä</title>' })),
  })
  await using maker = new AsyncClient({ transport: mock })
  await maker.get(url)
  mock.close()
  const player = await openBrowser(t)
  await player.routeFromHAR(own, { notFound: 'abort' })
  const shown = await player.newPage()
  await shown.goto(url)
  assert.equal(await shown.title(), 'recorded hä')
})
