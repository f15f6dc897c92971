import assert from 'node:assert/strict'
import { createServer } from 'node:http2'
import { test } from 'node:test'
import { AsyncClient } from 'runwright/http'
import {
  decodeHuffman, HpackDecoder, HpackEncoder, HpackError,
} from '../../../../lib/http/transports/http2/hpack.js'
import { listen } from '../../../helpers/serve.js'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** The blocks of one connection, in hex, and the fields that they encode, separated by `|`. */
interface Example {
  name: string
  blocks: { block: string; fields: string }[]
}

const examples: Example[] = [
  {
    name: 'requests without Huffman codes (RFC 7541, appendix C.3)',
    blocks: [
      {
        block: '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        fields: ':method GET|:scheme http|:path /|:authority www.example.com',
      },
      {
        block: '8286 84be 5808 6e6f 2d63 6163 6865',
        fields:
          ':method GET|:scheme http|:path /|:authority www.example.com|cache-control no-cache',
      },
      {
        block: '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
        fields:
          ':method GET|:scheme https|:path /index.html|:authority www.example.com|' +
          'custom-key custom-value',
      },
    ],
  },
  {
    name: 'requests with Huffman codes (appendix C.4)',
    blocks: [
      {
        block: '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        fields: ':method GET|:scheme http|:path /|:authority www.example.com',
      },
      {
        block: '8286 84be 5886 a8eb 1064 9cbf',
        fields:
          ':method GET|:scheme http|:path /|:authority www.example.com|cache-control no-cache',
      },
      {
        block: '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
        fields:
          ':method GET|:scheme https|:path /index.html|:authority www.example.com|' +
          'custom-key custom-value',
      },
    ],
  },
  {
    // The first block starts with a size update: these examples need a table of 256 bytes.
    name: 'responses that evict one another from the table (appendix C.6)',
    blocks: [
      {
        block:
          '3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 ' +
          '82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
        fields:
          ':status 302|cache-control private|date Mon, 21 Oct 2013 20:13:21 GMT|' +
          'location https://www.example.com',
      },
      {
        block: '4883 640e ffc1 c0bf',
        fields:
          ':status 307|cache-control private|date Mon, 21 Oct 2013 20:13:21 GMT|' +
          'location https://www.example.com',
      },
      {
        block:
          '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad ' +
          '94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 ' +
          '65c0 03ed 4ee5 b106 3d50 07',
        fields:
          ':status 200|cache-control private|date Mon, 21 Oct 2013 20:13:22 GMT|' +
          'location https://www.example.com|content-encoding gzip|' +
          'set-cookie foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
      },
    ],
  },
]

for (const { name, blocks } of examples) {
  test(`decodes ${name}`, () => {
    const decoder = new HpackDecoder(65_536)
    for (const { block, fields } of blocks) {
      const flat = fields
        .split('|')
        .flatMap((field) => [
          field.slice(0, field.indexOf(' ')),
          field.slice(field.indexOf(' ') + 1),
        ])
      assert.deepEqual(decoder.decode(hex(block)), { fields: flat, fault: null })
    }
  })
}

for (const { what, block } of [
  { what: 'index 0', block: '80' },
  { what: 'an index beyond the table', block: 'be' },
  { what: 'an unterminated integer', block: 'ff ffffffffff' },
  { what: 'an integer that is too large', block: 'ff ffffffff7f' },
  { what: 'a truncated name', block: '40 0a 6375' },
  { what: 'a field without a value', block: '40 01 61' },
  { what: 'a table size beyond the limit', block: '3fe2 1f' },
  { what: 'a table size update between fields', block: '82 20' },
  { what: 'EOS in a Huffman code', block: '40 84 ffffffff 01 61' },
  { what: 'Huffman padding that is not all ones', block: '40 81 18 01 61' },
  { what: 'Huffman padding of a whole byte', block: '40 82 1fff 01 61' },
]) {
  test(`a block with ${what} is invalid`, () => {
    assert.throws(() => new HpackDecoder(65_536).decode(hex(block)), HpackError)
  })
}

for (const { what, block } of [
  { what: 'an upper-case name', block: '00 01 41 01 61' },
  { what: 'a name with a space', block: '00 02 6120 01 61' },
  { what: 'an empty name', block: '00 00 01 61' },
  { what: 'a line break in a value', block: '00 01 61 02 610a' },
  { what: 'NUL in a value', block: '00 01 61 01 00' },
]) {
  test(`a section with ${what} is malformed, and the table stays usable`, () => {
    const decoder = new HpackDecoder(65_536)
    assert.notEqual(decoder.decode(hex(`40 01 62 01 63 ${block}`)).fault, null)
    assert.deepEqual(decoder.decode(hex('be')), { fields: ['b', 'c'], fault: null })
  })
}

test('a section larger than the limit is malformed, and its excess is not stored', () => {
  const decoder = new HpackDecoder(1000)
  const first = Buffer.concat([hex('40 01 61 7f 81 02'), Buffer.alloc(384, 'x')])
  assert.deepEqual(decoder.decode(first).fields.length, 2)
  const bomb = decoder.decode(Buffer.alloc(50_000, 0xbe))
  assert.match(String(bomb.fault), /larger than 1000/)
  assert.equal(bomb.fields.length, 4)
})

test('values are trimmed, and decoded as UTF-8 where that is valid', () => {
  const field = (value: Buffer): Buffer =>
    Buffer.concat([hex('00 01 61'), Buffer.from([value.length]), value])
  const read = (value: Buffer): string | undefined =>
    new HpackDecoder(1000).decode(field(value)).fields[1]
  assert.equal(read(Buffer.from(' \tb ')), 'b')
  assert.equal(read(Buffer.from('é€')), 'é€')
  assert.equal(read(Buffer.from('é', 'latin1')), 'é')
})

test('the decoder reads what the encoder sends, across changes of the table size', () => {
  const encoder = new HpackEncoder()
  const decoder = new HpackDecoder(1_000_000)
  let seed = 7
  const random = (below: number): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % below
  const names = [
    'accept',
    'x-one',
    'x-two',
    'user-agent',
    'authorization',
    'cookie',
    ':path',
    'te',
    'x-long',
  ]
  for (let turn = 0; turn < 2000; turn++) {
    if (random(100) === 0) encoder.limitTable([0, 100, 1000, 4096, 65_536][random(5)]!)
    let block = encoder.begin()
    const fields: string[] = []
    for (let i = random(12); i >= 0; i--) {
      const name = names[random(names.length)]!
      const short = (): string => `v${random(40)}${random(9) === 0 ? 'é' : ''}`
      const value = name === 'x-long' ? 'y'.repeat(random(5000)) : short()
      block += encoder.field(name, value)
      fields.push(name, value)
    }
    assert.deepEqual(decoder.decode(Buffer.from(block, 'latin1')), { fields, fault: null })
  }
})

test('a repeated field costs one byte; a field with a secret is never indexed', () => {
  const encoder = new HpackEncoder()
  assert.ok(encoder.field('x-a', 'b').length > 4)
  assert.equal(encoder.field('x-a', 'b'), '\xbe')
  const secret = encoder.field('authorization', 'Bearer s')
  assert.equal(secret.charCodeAt(0) & 0xf0, 0x10)
  assert.equal(encoder.field('authorization', 'Bearer s'), secret)
})

test("every byte allowed in a field survives node:http2's Huffman coding", async () => {
  const values = new Map<string, string>()
  for (let byte = 0x20; byte < 0x100; byte++) {
    if (byte === 0x7f) continue
    // The short codes around it make the server choose Huffman coding.
    values.set(`x-${byte}`, `${'a'.repeat(40)}${String.fromCharCode(byte)}e`)
  }
  const server = createServer()
  const seen: string[] = []
  server.on('stream', (stream, headers) => {
    seen.push(String(headers['x-sent']))
    stream.respond({ ':status': 200, ...Object.fromEntries(values) })
    stream.end()
  })
  await using served = await listen(server as never)
  await using client = new AsyncClient({ http1: false, http2: true })
  for (let i = 0; i < 3; i++) {
    const { headers } = await client.get(served.origin, { headers: { 'X-Sent': `~${i} é` } })
    for (const [name, value] of values) assert.equal(headers.get(name), value, name)
  }
  assert.deepEqual(
    seen.map((value) => Buffer.from(value, 'latin1').toString()),
    ['~0 é', '~1 é', '~2 é'],
  )
})

test('no bytes decode to an empty string', () => {
  assert.equal(decodeHuffman(new Uint8Array(0), 0, 0), '')
})
