/**
 * What arrives in pieces costs linear time, copies included, which no count of steps shows: four
 * times the pieces may take at most nine times the CPU time. Quadratic work takes sixteen times.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import type { StreamDecoder } from '../lib/agent/models/adapter.js'
import { AnthropicStream } from '../lib/agent/models/anthropic/stream.js'
import { GeminiStream } from '../lib/agent/models/gemini/stream.js'
import { OpenAiChatStream } from '../lib/agent/models/openai/chat-stream.js'
import { OpenAiResponsesStream } from '../lib/agent/models/openai/responses.js'
import { ModelError } from '../lib/agent/errors.js'
import type { JsonObject } from '../lib/internal/json.js'
import { ByteCollector } from '../lib/internal/bytes.js'
import { LineSplitter, TextChunker } from '../lib/http/content/text.js'
import { SseParser } from '../lib/http/content/sse-parser.js'
import { FRAME, frame, FrameParser } from '../lib/http/transports/http2/frames.js'
import { Backlog } from '../lib/ws/backlog.js'
import { Inbox } from '../lib/ws/inbox.js'
import { Inflater } from '../lib/ws/inflater.js'
import { Receiver } from '../lib/ws/receiver.js'

/** Pieces of the shorter of the two streams. */
const PIECES = 1_500
/** CPU milliseconds below which a ratio means nothing. */
const FLOOR_MS = 40
const TEXT = 'some text of '.repeat(4)

interface Reader {
  readonly name: string
  /** Reads as many pieces. */
  readonly read: (count: number) => unknown
  /** Where each piece costs much, or little. @defaultValue PIECES */
  readonly pieces?: number
}

/** For pieces that cost little each. */
const long =
  (read: Reader['read']): Reader['read'] =>
  (count) =>
    read(4 * count)

const request = {
  run: { iteration: 1, turn: 1 }, system: '', messages: [], tools: [], signal: AbortSignal.any([]),
} as never
const context = { model: 'test:m', secrets: [] }

/** Reads an answer of a model whose pieces are these; the stream may end in the middle. */
function answer(
  open: () => StreamDecoder,
  piece: (i: number) => JsonObject,
  first: readonly JsonObject[] = [],
): Reader['read'] {
  return (count) => {
    const decoder = open()
    const push = (value: JsonObject): unknown =>
      decoder.push({ event: '', data: JSON.stringify(value) })
    first.forEach(push)
    for (let i = 0; i < count; i++) push(piece(i))
    assert.ok(decoder.received >= 0)
    try {
      decoder.finish()
    } catch (error) {
      assert.ok(error instanceof ModelError)
    }
  }
}

type Piece = (i: number) => JsonObject

const chat = (delta: Piece, first: readonly JsonObject[] = []): Reader['read'] => {
  const chunk = (one: JsonObject): JsonObject => ({ choices: [{ delta: one }] })
  const open = (): StreamDecoder => new OpenAiChatStream(request, context)
  return answer(open, (i) => chunk(delta(i)), first.map(chunk))
}
const details = (piece: Piece): Reader['read'] =>
  chat((i) => ({ reasoning_details: [piece(i)] }))
const call = (more: Piece, first: readonly JsonObject[] = []): Reader['read'] =>
  chat((i) => ({ tool_calls: [more(i)] }), first.map((one) => ({ tool_calls: [one] })))
const MANY_FIELDS = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`field${i}`, i]))

const CHAT: Readonly<Record<string, Reader['read']>> = {
  text: chat(() => ({ content: TEXT })),
  'parts that are text': chat(() => ({ content: [{ type: 'text', text: TEXT }] })),
  'parts of changing kinds': long(
    chat((i) => ({ content: [{ type: i % 2 ? 'text' : 'a', text: 'a' }] })),
  ),
  'text beside parts': long(chat(() => ({ content: TEXT }), [{ content: [{ type: 'a' }] }])),
  'a part with many fields': chat(
    () => ({ content: [{ type: 'text', text: 'a' }] }),
    [{ content: [{ ...MANY_FIELDS, type: 'text' }] }],
  ),
  thoughts: chat(() => ({
    content: [{ type: 'thinking', thinking: [{ type: 'text', text: TEXT }] }],
  })),
  'thoughts of changing kinds': long(chat((i) => ({
    content: [{ type: 'thinking', thinking: [{ type: i % 2 ? 'text' : 'a', text: 'a' }] }],
  }))),
  'fields of thoughts': chat((i) => ({ content: [{ type: 'thinking', thinking: [], [`a${i}`]: i }] })),
  'one block of details': details(() => ({ index: 0, text: TEXT })),
  'many blocks of details': long(details((i) => ({ index: i, text: 'a' }))),
  'details without index': details(() => ({ text: 'a' })),
  'fields of details': details((i) => ({ index: 0, [`a${i}`]: i })),
  'lists in details': long(details((i) => ({ index: 0, summary: [{ type: `a${i % 2}` }] }))),
  'fields of a message': chat((i) => ({ [`a${i}`]: i })),
  'arguments of a call': call(() => ({ index: 0, function: { arguments: TEXT } })),
  'arguments beside a name': long(call(
    () => ({ function: { name: 'a', arguments: TEXT } }),
    [{ function: { name: 'a', arguments: '{"a":"' } }],
  )),
  'arguments that are objects': call((i) => ({ index: 0, function: { arguments: { a: i } } })),
  'many calls': call((i) => ({ index: i, id: `id${i}`, function: { name: 'a', arguments: '{}' } })),
  'calls by id': call((i) => ({ id: `id${i}`, function: { name: 'a', arguments: '{}' } })),
  'fields of a call': call((i) => ({ index: 0, [`a${i}`]: i })),
}

const anthropic = (piece: Piece, block: JsonObject): Reader['read'] =>
  answer(
    () => new AnthropicStream(request, context),
    piece,
    [{ type: 'content_block_start', index: 0, content_block: block }],
  )
const delta = (fields: Piece, block: JsonObject): Reader['read'] =>
  anthropic((i) => ({ type: 'content_block_delta', index: 0, delta: fields(i) }), block)

const ANTHROPIC: Readonly<Record<string, Reader['read']>> = {
  text: delta(() => ({ type: 'text_delta', text: TEXT }), { ...MANY_FIELDS, type: 'text' }),
  thoughts: delta(() => ({ type: 'thinking_delta', thinking: TEXT }), { type: 'thinking' }),
  arguments: delta(() => ({ type: 'input_json_delta', partial_json: TEXT }), { type: 'tool_use' }),
  citations: long(
    delta((i) => ({ type: 'citations_delta', citation: { a: i } }), { type: 'text' }),
  ),
  blocks: anthropic(
    (i) => ({ type: 'content_block_start', index: i, content_block: { type: 'text', text: 'a' } }),
    { type: 'text' },
  ),
  counts: anthropic((i) => ({ type: 'message_delta', usage: { [`a${i}`]: i } }), { type: 'text' }),
}

const gemini = (part: Piece, first: readonly JsonObject[] = []): Reader['read'] => {
  const chunk = (one: JsonObject): JsonObject => ({ candidates: [{ content: { parts: [one] } }] })
  const open = (): StreamDecoder => new GeminiStream(request, context)
  return answer(open, (i) => chunk(part(i)), first.map(chunk))
}
const CALL = { functionCall: { name: 'a', args: {} } }

const GEMINI: Readonly<Record<string, Reader['read']>> = {
  text: gemini(() => ({ text: TEXT }), [{ ...MANY_FIELDS, text: 'a' }]),
  'text and thoughts': gemini((i) => ({ text: 'a', thought: i % 2 === 0 })),
  'arguments of a call': gemini((i) => ({ functionCall: { args: { [`a${i}`]: i } } }), [CALL]),
  'fields of a call': gemini((i) => ({ functionCall: { [`a${i}`]: i }, [`a${i}`]: i }), [CALL]),
  calls: gemini(() => CALL),
}

const RESPONSES: Readonly<Record<string, Reader['read']>> = {
  text: answer(
    () => new OpenAiResponsesStream(request, context),
    () => ({ type: 'response.output_text.delta', delta: TEXT }),
  ),
  items: answer(
    () => new OpenAiResponsesStream(request, context),
    () => ({ type: 'response.output_item.done', item: { type: 'message', content: [] } }),
  ),
}

const group = (of: string, readers: Readonly<Record<string, Reader['read']>>): readonly Reader[] =>
  Object.entries(readers).map(([name, read]) => ({ name: `${of}: ${name}`, read }))

const LIMITS = { maxMessageBytes: 1e9, maxFragments: 1e9, maxControlFramesPerSecond: null }

/** A receiver of a client, and a promise of its first message. */
function openReceiver(inflater: Inflater | null = null): {
  readonly receiver: Receiver<null>
  readonly message: Promise<string | Buffer>
} {
  let receiver: Receiver<null>
  const message = new Promise<string | Buffer>((resolve, reject) => {
    const events = {
      message: (_: null, whole: string | Buffer) => (resolve(whole), true),
      failed: (_: null, error: Error) => reject(error),
      ping() {}, pong() {}, close() {}, paused() {},
    }
    receiver = new Receiver(null, events, LIMITS, inflater, 'client')
  })
  return { receiver: receiver!, message }
}

const OTHERS: readonly Reader[] = [
  {
    name: 'fragments of a WebSocket message',
    read: async (count) => {
      const { receiver, message } = openReceiver()
      for (let i = 0; i < count; i++)
        receiver.push(Buffer.from([i === 0 ? 2 : i === count - 1 ? 0x80 : 0, 1, 97]))
      assert.equal((await message).length, count)
    },
  },
  {
    name: 'a WebSocket message, byte by byte',
    read: async (count) => {
      const { receiver, message } = openReceiver()
      receiver.push(Buffer.from([0x81, 126, count >> 8, count & 255]))
      for (let i = 0; i < count; i++) receiver.push(Buffer.from('a'))
      assert.equal((await message).length, count)
    },
  },
  {
    name: 'compressed fragments of a WebSocket message',
    pieces: 1_000,
    read: async (count) => {
      const content = Array.from({ length: count }, (_, i) => (i * 97) % 251)
      const bytes = deflateRawSync(Buffer.from(content))
      const { receiver, message } = openReceiver(new Inflater(1e9, true))
      for (const [i, byte] of [...bytes, 0].entries())
        receiver.push(Buffer.from([i === 0 ? 0x42 : i === bytes.length ? 0x80 : 0, 1, byte]))
      assert.equal((await message).length, count)
    },
  },
  {
    name: 'WebSocket messages that wait for the program',
    pieces: 50_000,
    read: (count) => {
      const limits = { receiveAheadBytes: 1e9, maxMessageBytes: 1 }
      const inbox = new Inbox(null, { changed() {}, left() {} }, limits)
      for (let i = 0; i < count; i++) inbox.push('')
      while (inbox.shift() !== undefined);
    },
  },
  {
    name: 'WebSocket messages that wait for the peer',
    pieces: 25_000,
    read: (count) => {
      const backlog = new Backlog()
      for (let i = 0; i < count; i++)
        backlog.hold({ frame: Buffer.alloc(0), payload: null, context: null }, undefined)
      while (backlog.shift() !== undefined);
    },
  },
  {
    name: 'a frame of HTTP/2, byte by byte',
    read: (count) => {
      let content = 0
      const onData = (_: number, { length }: Buffer): unknown => (content += length)
      const parser = new FrameParser({ onData, onFrame() {} })
      const bytes = Buffer.from(frame(FRAME.data, 0, 1, 'a'.repeat(9)).repeat(count), 'latin1')
      for (const byte of bytes) parser.feed(Buffer.of(byte))
      assert.equal(content, 9 * count)
    },
  },
  {
    name: 'an event, byte by byte',
    read: (count) => {
      const parser = new SseParser()
      parser.feed('data: ')
      for (let i = 0; i < count; i++) parser.feed(TEXT)
      assert.equal(parser.feed('\n\n').length, 1)
    },
  },
  {
    name: 'a line, in pieces',
    read: (count) => {
      const splitter = new LineSplitter()
      for (let i = 0; i < count; i++) splitter.feed(TEXT)
      splitter.end()
    },
  },
  {
    name: 'a long piece of text, in short ones',
    read: (count) => {
      const chunker = new TextChunker(1e9)
      for (let i = 0; i < count; i++) chunker.feed(TEXT)
      chunker.end()
    },
  },
  {
    name: 'bytes of a message',
    read: (count) => {
      const collector = new ByteCollector()
      for (let i = 0; i < count; i++) collector.add(Buffer.from('a'))
      assert.equal(collector.take().length, count)
    },
  },
]

const READERS: readonly Reader[] = [
  ...group('Chat Completions', CHAT),
  ...group('Messages', ANTHROPIC),
  ...group('Gemini', GEMINI),
  ...group('Responses', RESPONSES),
  ...OTHERS,
]

/** CPU milliseconds that reading takes. */
async function cpuOf(read: Reader['read'], count: number): Promise<number> {
  const before = process.cpuUsage()
  await read(count)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

for (const { name, read, pieces = PIECES } of READERS) {
  test(`four times the pieces take at most nine times the CPU time: ${name}`, async () => {
    await read(pieces >> 3)
    let [once, fourTimes] = [Infinity, Infinity]
    // What else the process does, such as collecting garbage, is not in each of three times.
    for (let times = 0; times < 3; times++) {
      once = Math.min(once, await cpuOf(read, pieces))
      fourTimes = Math.min(fourTimes, await cpuOf(read, 4 * pieces))
      if (fourTimes < FLOOR_MS || fourTimes <= 9 * once) return
    }
    assert.fail(`${once.toFixed(1)} ms, then ${fourTimes.toFixed(1)} ms`)
  })
}
