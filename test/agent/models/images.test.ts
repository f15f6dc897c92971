/** Images in each wire format, and how large they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicAdapter,
  createHttpProvider,
  geminiAdapter,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type ImagePart,
  type JsonObject,
  type Message,
  type ModelAdapter,
} from 'runwright/agent'
import { fitContext } from '../../../lib/agent/conversation/fit.js'
import { imageBytes } from '../../../lib/agent/image-part.js'
import { decodeBase64, imagePart, imageTokens, imageType } from '../../../lib/agent/images.js'
import { gif, jpeg, png, webp } from '../../helpers/images.js'
import { modelRequest } from './exchange.js'

const part = (bytes: Uint8Array): ImagePart => imagePart(bytes)!
const A = part(png(2, 3, 64, 1))
const B = part(jpeg())
const url = ({ media_type, data }: ImagePart): string => `data:${media_type};base64,${data}`
const ID = 'call_aaaaaaaaa1'

function conversation(exit_code: number, images: readonly ImagePart[] = [B]): readonly Message[] {
  return [
    { role: 'user', text: 'Look.', images: [A] },
    { role: 'assistant', text: '', calls: [{ call_id: ID, tool: 'shot', args: {} }] },
    { role: 'tool', call_id: ID, tool: 'shot', output: 'done', exit_code, images },
  ]
}

function bodyOf(adapter: ModelAdapter, messages: readonly Message[], model = 'm'): JsonObject {
  return adapter.encode(modelRequest({ messages }), { model, stream: false }).body
}

const TITLE = `Images that shot returned (${ID}):`
const anthropicImage = (image: ImagePart): JsonObject => ({
  type: 'image', source: { type: 'base64', media_type: image.media_type, data: image.data },
})
const inline = ({ media_type, data }: ImagePart): JsonObject => ({
  inlineData: { mimeType: media_type, data },
})

test('Chat Completions: images of results come after them', () => {
  const { messages } = bodyOf(openAiChatAdapter(), conversation(0))
  assert.deepEqual((messages as JsonObject[])[0], {
    role: 'user',
    content: [
      { type: 'text', text: 'Look.' }, { type: 'image_url', image_url: { url: url(A) } },
    ],
  })
  assert.deepEqual((messages as JsonObject[]).slice(2), [
    { role: 'tool', tool_call_id: ID, content: 'done' },
    {
      role: 'user',
      content: [
        { type: 'text', text: TITLE }, { type: 'image_url', image_url: { url: url(B) } },
      ],
    },
  ])
})

test('Responses: images are a part of the output', () => {
  const { input } = bodyOf(openAiResponsesAdapter(), conversation(1))
  const image = (one: ImagePart): JsonObject => ({
    type: 'input_image', detail: 'auto', image_url: url(one),
  })
  assert.deepEqual((input as JsonObject[])[0], {
    role: 'user', content: [{ type: 'input_text', text: 'Look.' }, image(A)],
  })
  assert.deepEqual((input as JsonObject[])[2], {
    type: 'function_call_output', call_id: ID,
    output: [{ type: 'input_text', text: 'done\n[exit code 1]' }, image(B)],
  })
})

test('Messages: images are a part of a result, and come after one that is an error', () => {
  const adapter = anthropicAdapter({ promptCaching: false })
  const ok = bodyOf(adapter, conversation(0))['messages'] as JsonObject[]
  assert.deepEqual(ok[0], {
    role: 'user', content: [anthropicImage(A), { type: 'text', text: 'Look.' }],
  })
  const use = { type: 'tool_result', tool_use_id: ID }
  assert.deepEqual(ok[2], {
    role: 'user',
    content: [{ ...use, content: [{ type: 'text', text: 'done' }, anthropicImage(B)] }],
  })
  const failed = bodyOf(adapter, conversation(1))['messages'] as JsonObject[]
  assert.deepEqual(failed[2], {
    role: 'user',
    content: [
      { ...use, content: 'done\n[exit code 1]', is_error: true },
      { type: 'text', text: TITLE }, anthropicImage(B),
    ],
  })
})

test('Gemini: results hold images since Gemini 3, and never a GIF', () => {
  const response = { name: 'shot', response: { output: 'done' } }
  const since = bodyOf(geminiAdapter(), conversation(0), 'gemini-3.5-flash')
  assert.deepEqual((since['contents'] as JsonObject[])[0], {
    role: 'user', parts: [inline(A), { text: 'Look.' }],
  })
  assert.deepEqual((since['contents'] as JsonObject[]).slice(2), [
    { role: 'user', parts: [{ functionResponse: { ...response, parts: [inline(B)] } }] },
  ])
  const before = bodyOf(geminiAdapter(), conversation(0), 'gemini-2.5-pro')
  assert.deepEqual((before['contents'] as JsonObject[]).slice(2), [
    { role: 'user', parts: [{ functionResponse: response }] },
    { role: 'user', parts: [inline(B), { text: TITLE }] },
  ])
  const animated = bodyOf(geminiAdapter(), conversation(0, [part(gif())]), 'gemini-3.5-flash')
  assert.deepEqual((animated['contents'] as JsonObject[]).slice(2), [
    { role: 'user', parts: [{ functionResponse: response }] },
  ])
})

test('a message of images alone is sent', () => {
  const messages: Message[] = [{ role: 'user', text: '', images: [A] }]
  for (const adapter of [
    openAiChatAdapter(), openAiResponsesAdapter(), anthropicAdapter(), geminiAdapter(),
  ])
    assert.ok(JSON.stringify(bodyOf(adapter, messages)).includes(A.data), adapter.provider)
})

for (const [name, bytes, type, tokens] of [
  ['PNG', png(1_500, 1_000), 'image/png', 2_000],
  ['GIF', gif(1_500, 1_000), 'image/gif', 2_000],
  ['JPEG', jpeg(1_500, 1_000), 'image/jpeg', 2_000],
  ['JPEG with a long beginning', jpeg(1_500, 1_000, 65_000), 'image/jpeg', 2_000],
  ['lossy WebP', webp('VP8 ', 1_500, 1_000), 'image/webp', 2_000],
  ['lossless WebP', webp('VP8L', 1_500, 1_000), 'image/webp', 2_000],
  ['extended WebP', webp('VP8X', 1_500, 1_000), 'image/webp', 2_000],
  ['small PNG', png(1, 1), 'image/png', 85],
  ['huge PNG', png(0xffffffff, 0xffffffff), 'image/png', 5_000],
] as const) {
  test(`the size of an image is estimated by its pixels: ${name}`, () => {
    const image = part(bytes)
    assert.equal(image.media_type, type)
    assert.equal(imageTokens(image), tokens)
    assert.equal(imageBytes(image), bytes.length)
    assert.deepEqual(Buffer.from(decodeBase64(image.data)!), bytes)
  })
}

test('headers that are cut or lie are read without harm', () => {
  const files = [png(), gif(), jpeg(), webp('VP8 '), webp('VP8L'), webp('VP8X')]
  for (const file of files) {
    for (let length = 1; length <= file.length; length++) {
      const cut = file.subarray(0, length)
      const image = imagePart(cut)
      assert.equal(image === null, imageType(cut) === null)
      if (image !== null) assert.ok(imageTokens(image) > 0)
    }
  }
  const loop = Buffer.alloc(65_536, 0xff)
  loop.writeUInt16BE(0xffd8)
  assert.ok(imageTokens(part(loop)) > 0)
})

test('base64 is what decodes to the same text', () => {
  for (const text of ['', 'a', 'ab==', 'A===', 'YQ', 'YQ=', 'YQ==\n', '-_-_', 'Y!=='])
    assert.equal(decodeBase64(text), null, text)
  assert.deepEqual(Buffer.from(decodeBase64('YQ==')!), Buffer.from('a'))
})

test('images of earlier turns are the first to be left out', () => {
  const big = part(png(1_500, 1_000))
  const turn = (id: string, output: string): Message[] => [
    { role: 'assistant', text: '', calls: [{ call_id: id, tool: 'shot', args: {} }] },
    { role: 'tool', call_id: id, tool: 'shot', output, exit_code: 0, images: [big] },
  ]
  const long = 'x'.repeat(3_000)
  const messages: Message[] = [
    { role: 'user', text: 'Look.', images: [A] }, ...turn('c1', long), ...turn('c2', long),
    ...turn('c3', long),
  ]
  const fitted = fitContext(messages, 6_000)
  assert.ok(fitted.fits)
  assert.deepEqual(
    fitted.messages.map((one) => (one.role === 'assistant' ? 0 : (one.images?.length ?? 0))),
    [1, 0, 0, 0, 0, 0, 1],
  )
  assert.equal(fitted.masked + fitted.dropped, 0)
  const [, , first] = fitted.messages
  assert.ok(first?.role === 'tool' && first.output.startsWith(long))
  assert.match(first.output, /\[an image is left out: image\/png, 64 bytes; get it again/)
  assert.deepEqual(fitContext(fitted.rest, 6_000), { ...fitted, messages: fitted.rest })
  assert.equal(fitContext(messages, 100_000).fits && messages, messages)
})

test('which models take images is known, and the host has the last word', () => {
  const taken = (model: string, images?: boolean | { [name: string]: boolean }): boolean =>
    createHttpProvider(openAiChatAdapter(), { id: 'p', baseUrl: 'http://a.test', images })
      .create(model).takesImages
  for (const model of [
    'gpt-4o', 'gpt-4.1-mini', 'gpt-5.4', 'openai/gpt-6-sol', 'o1', 'o3', 'o4-mini',
    'claude-opus-5', 'anthropic/claude-3-haiku', 'gemini-3.5-flash',
  ]) assert.ok(taken(model), model)
  for (const model of ['gpt-3.5-turbo', 'gpt-4', 'o1-mini', 'o3-mini', 'llama3.1:8b', 'deepseek-v3'])
    assert.ok(!taken(model), model)
  assert.ok(taken('llava', true))
  assert.ok(taken('qwen-vl-7b', { '*-vl-*': true }))
  assert.ok(!taken('gpt-4o', { 'gpt-*': false }))
  for (const [images, message] of [
    ['yes', /images must be true, false or a map by model/],
    [{ a: 1 }, /images\["a"\] must be true or false/],
  ] as const)
    assert.throws(() => taken('m', images as unknown as boolean), message)
})
