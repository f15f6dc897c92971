import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Headers } from 'runwright/http'
import {
  ResponseParser,
  type ResponseHead,
} from '../../../../lib/http/transports/http1/response-parser.js'

interface Seen {
  heads: ResponseHead[]
  content: string
  trailers: Headers | null
  done: boolean
  rest: string
}

/** Parses `bytes`, fed in pieces of `size`. */
function parse(bytes: Buffer, size: number, method = 'GET'): Seen {
  const seen: Seen = { heads: [], content: '', trailers: null, done: false, rest: '' }
  const parser = new ResponseParser(
    {
      onHead: (head) => seen.heads.push(head),
      onContent: (chunk) => (seen.content += Buffer.from(chunk).toString('latin1')),
      onComplete: (trailers) => {
        seen.trailers = trailers
        seen.done = true
      },
    },
    4096,
  )
  parser.reset(method)
  for (let at = 0; at < bytes.length; at += size) {
    const rest = parser.feed(bytes.subarray(at, at + size))
    if (rest !== null) seen.rest += rest.toString('latin1')
  }
  if (!seen.done) parser.end()
  return seen
}

test('bytes after a 2xx to CONNECT are not content, and the connection is not reused', () => {
  const seen = parse(
    Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ntunnelled'),
    200,
    'CONNECT',
  )
  assert.deepEqual([seen.content, seen.rest, seen.heads[0]!.keepAlive], ['', 'tunnelled', false])
  assert.equal(
    parse(Buffer.from('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno'), 200, 'CONNECT').content,
    'no',
  )
})

for (const { name, message, content, trailer, rest } of [
  {
    name: 'Content-Length',
    message: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: \t b \t\r\n\r\nhello',
    content: 'hello',
  },
  {
    name: 'chunks with extensions and trailers, after 103',
    message:
      'HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n' +
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' +
      '5;a="b"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\nnext',
    content: 'hello0123456789',
    trailer: '1',
    rest: 'next',
  },
  {
    name: 'the end of the connection',
    message: 'HTTP/1.0 200\r\n\r\nall of it',
    content: 'all of it',
  },
  {
    name: 'status 204',
    message: 'HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\nrest',
    content: '',
    rest: 'rest',
  },
]) {
  test(`content delimited by ${name} is the same however the bytes are split`, () => {
    const bytes = Buffer.from(message, 'latin1')
    for (let size = 1; size <= bytes.length; size++) {
      const seen = parse(bytes, size)
      assert.equal(seen.content, content, `pieces of ${size}`)
      assert.equal(seen.done, true)
      assert.equal(seen.trailers?.get('x-t'), trailer)
      assert.equal(seen.rest, rest ?? '')
    }
  })
}

test('values are trimmed, and decoded as UTF-8 where that is valid', () => {
  const head = Buffer.from('HTTP/1.1 200 \r\nA: \t b \t\r\nB: ä\r\nContent-Length: 0\r\n\r\n')
  const { headers, reasonPhrase } = parse(head, 1000).heads[0]!
  assert.deepEqual([headers.get('a'), headers.get('b'), reasonPhrase], ['b', 'ä', ''])
})
