import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  appendFileSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  openAsBlob,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  type ReadStream,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AsyncClient, InvalidBodyError, LocalProtocolError, type BodyContent } from 'runwright/http'
import { behaviour, failure, useApp } from '../both-clients.js'
import { serve } from '../../helpers/serve.js'

useApp()

const folder = mkdtempSync(join(tmpdir(), 'runwright-file-length-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0

/** A new file with this content, by default 200 000 letters. */
function file(content: string = 'abcdefghij'.repeat(20_000)): string {
  const path = join(folder, `f${files++}`)
  writeFileSync(path, content)
  return path
}

interface Sent {
  readonly body: string
  readonly length: string | undefined
  readonly totals: readonly (number | null)[]
}

const echo = serve(async (request, response) => {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return // The request was cut off.
  }
  const length = request.headers['content-length']
  response.end(JSON.stringify({ body: Buffer.concat(chunks).toString('latin1'), length }))
})
const client = new AsyncClient()
after(async () => {
  await client.close()
  await (await echo).close()
})

/** Sends `content`, after `before` has run between building the request and sending it. */
async function send(content: BodyContent, before: () => unknown = () => {}): Promise<Sent> {
  const totals: (number | null)[] = []
  const request = client.buildRequest('POST', (await echo).origin, {
    content,
    extensions: { onUpload: (_, total) => void totals.push(total) },
  })
  await before()
  const { body, length } = (await client.send(request)).json<{ body: string; length: string }>()
  return { body, length, totals }
}

const whole = readFileSync(file(), 'latin1')

/** Streams of a file of 200 000 bytes, and what is sent of each with its length. */
const known: Record<string, [make: (path: string) => ReadStream, start: number, end: number]> = {
  whole: [(path) => createReadStream(path), 0, 200_000],
  'from start': [(path) => createReadStream(path, { start: 7 }), 7, 200_000],
  'to end': [(path) => createReadStream(path, { end: 9 }), 0, 10],
  between: [(path) => createReadStream(path, { start: 3, end: 70_000 }), 3, 70_001],
  'with an end beyond': [(path) => createReadStream(path, { start: 5, end: 1e9 }), 5, 200_000],
  'in pieces': [(path) => createReadStream(path, { highWaterMark: 1000 }), 0, 200_000],
  'of a descriptor, with start': [
    (path) => createReadStream('', { fd: openSync(path, 'r'), start: 4 }),
    4,
    200_000,
  ],
}

for (const [name, [make, start, end]] of Object.entries(known)) {
  test(`a file stream (${name}) is sent and reported with its length`, async () => {
    const { body, length, totals } = await send(make(file()))
    assert.equal(body, whole.slice(start, end))
    assert.equal(length, String(end - start))
    assert.ok(totals.length > 0)
    assert.deepEqual([...new Set(totals)], [end - start])
  })
}

test('a file stream that was opened or read in part has the rest as its length', async () => {
  const opened = createReadStream(file())
  await once(opened, 'open')
  assert.equal((await send(opened)).length, '200000')
  const begun = createReadStream(file(), { highWaterMark: 1000 })
  await once(begun, 'readable')
  assert.equal((begun.read(300) as Buffer).length, 300)
  const rest = await send(begun)
  assert.deepEqual([rest.length, rest.body === whole.slice(300)], ['199700', true])
})

/** Streams whose length is not known, which are sent in chunks to their end. */
const unknown: Record<string, [make: () => ReadStream, body: string]> = {
  'with an encoding': [() => createReadStream(file('ä'), 'utf8'), 'Ã¤'],
  'in another encoding': [() => createReadStream(file('ab'), 'hex'), '6162'],
  'of an empty file': [() => createReadStream(file('')), ''],
  'from beyond the end': [() => createReadStream(file('abc'), { start: 9 }), ''],
  'of a descriptor that is somewhere': [
    () => createReadStream('', { fd: openSync(file('abc'), 'r') }),
    'abc',
  ],
}

for (const [name, [make, expected]] of Object.entries(unknown)) {
  test(`a file stream (${name}) is sent without a length`, async () => {
    const { body, length, totals } = await send(make())
    assert.deepEqual([body, length], [expected, undefined])
    assert.ok(totals.every((total) => total === null))
  })
}

const proc = '/proc/self/limits'
test('files and streams of /proc are sent whole', { skip: !existsSync(proc) }, async () => {
  const content = readFileSync(proc, 'latin1')
  assert.equal((await send(createReadStream(proc))).body, content)
  await using handle = await open(proc)
  assert.equal((await send(handle)).body, content)
})

const grow = (path: string) => (): void => appendFileSync(path, 'more')
const shrink = (path: string) => (): void => truncateSync(path, 100)

test('a file that grows is sent as it was; one that shrinks fails the call', async () => {
  const stream = file()
  const blob = file()
  const held = file()
  assert.equal((await send(createReadStream(stream), grow(stream))).body, whole)
  await using handle = await open(held)
  assert.equal((await send(handle, grow(held))).body, whole)
  const cut = await failure(() => send(createReadStream(stream), shrink(stream)))
  assert.ok(cut instanceof LocalProtocolError, String(cut))
  assert.match(cut.message, /the request body has 100 bytes, but its Content-Length is 200004/)
  const short = await failure(() => send(handle, shrink(held)))
  assert.match(short.message, /the request body has 100 bytes, but its Content-Length is 200004/)
  const backed = await openAsBlob(blob)
  assert.equal((await send(backed)).length, '200000')
  for (const change of [grow, shrink]) {
    const changed = await failure(() => send(backed, change(blob)))
    assert.equal(changed.name, 'NotReadableError')
  }
})

test('a file that is missing fails the call with its reason', async () => {
  const error = await failure(() => send(createReadStream(join(folder, 'none'))))
  assert.match(`${error.message} ${String(error.cause)}`, /ENOENT/)
})

test('a form with file streams has its length', async () => {
  const files = { a: createReadStream(file(), { end: 9 }), b: ['b.txt', 'x'] } as const
  const response = await client.post((await echo).origin, { data: { c: '1' }, files })
  const { body, length } = response.json<{ body: string; length: string }>()
  assert.equal(length, String(body.length))
  assert.match(body, /\r\n\r\nabcdefghij\r\n--/)
})

behaviour('an open file must be a regular file, and may be empty', async ({ client }) => {
  const skip = process.platform === 'win32'
  for (const path of skip ? [] : ['/dev/null', folder]) {
    await using handle = await open(path)
    const error = await failure(() => client.post('/echo', { content: handle }))
    assert.ok(error instanceof InvalidBodyError)
    assert.match(error.message, /must be a regular file/)
  }
  await using empty = await open(file(''))
  const { headers, body } = (await client.post('/echo', { content: empty })).json<{
    headers: Record<string, string>
    body: string
  }>()
  assert.deepEqual([headers['content-length'], body], ['0', ''])
})
