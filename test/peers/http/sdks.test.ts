import assert from 'node:assert/strict'
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import Anthropic, * as anthropicErrors from '@anthropic-ai/sdk'
import OpenAI, * as openaiErrors from 'openai'
import { AsyncClient } from 'runwright/http'

// The official SDKs on `client.fetch`, against a server that plays both providers.

interface Received {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

const received: Received[] = []
/** What the server does with the next requests, in turn; afterwards it answers as a provider. */
const script: ((response: ServerResponse) => void)[] = []
let closedEarly = 0

const chat = (delta: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta }] })}\n\n`
const event = (type: string, more: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [] as object[],
  stop_reason: null,
  usage: { input_tokens: 1, output_tokens: 1 },
}

const WORDS = ['one ', 'two ', 'thrée']
const TEXT = WORDS.join('')

function* chatEvents(): Generator<string> {
  for (const content of WORDS) yield chat({ content })
  yield 'data: [DONE]\n\n'
}

function* messageEvents(): Generator<string> {
  yield event('message_start', { message })
  yield event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  for (const text of WORDS) {
    yield event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
  }
  yield event('content_block_stop', { index: 0 })
  yield event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } })
  yield event('message_stop')
}

/** Sends the events one by one; `endless` ones until the client goes away. */
async function stream(response: ServerResponse, events: Generator<string>): Promise<void> {
  response.setHeader('content-type', 'text/event-stream')
  response.on('close', () => void (response.writableEnded || closedEarly++))
  for (const text of events) {
    if (response.destroyed) return
    const bytes = Buffer.from(text)
    // Cut inside of an event, and of a character.
    response.write(bytes.subarray(0, bytes.length - 7))
    await new Promise((resolve) => setImmediate(resolve))
    response.write(bytes.subarray(bytes.length - 7))
  }
  response.end()
}

function* endless(text: string): Generator<string> {
  for (;;) yield text
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const path = request.url!
  received.push({ path, headers: request.headers, body: Buffer.concat(chunks) })
  const next = script.shift()
  if (next !== undefined) return next(response)
  response.setHeader('content-type', 'application/json')
  const isStream = /"stream":\s*true/.test(Buffer.concat(chunks).toString())
  if (path.endsWith('/chat/completions')) {
    if (isStream) return await stream(response, chatEvents())
    const choices = [{ index: 0, message: { role: 'assistant', content: TEXT } }]
    response.end(JSON.stringify({ id: 'c', object: 'chat.completion', choices }))
  } else if (path.startsWith('/v1/messages')) {
    if (isStream) return await stream(response, messageEvents())
    const content = [{ type: 'text', text: TEXT }]
    response.end(JSON.stringify({ ...message, content, stop_reason: 'end_turn' }))
  } else response.end(JSON.stringify({ id: 'file-1', object: 'file', data: [], has_more: false }))
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy())
})
const folder = mkdtempSync(join(tmpdir(), 'runwright-sdks-'))
const client = new AsyncClient({ trustEnv: false })
let origin = ''
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(async () => {
  await client.close()
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

/** Makes the same calls with either SDK. */
interface Sdk {
  readonly errors: typeof openaiErrors | typeof anthropicErrors
  ask(options?: object): Promise<string>
  /** The text of a stream, of which at most `most` pieces are read. */
  streamed(most: number, options?: object): Promise<string>
  upload(file: object): Promise<unknown>
}

function openai(): Sdk {
  const sdk = new OpenAI({ apiKey: 'key-o', baseURL: `${origin}/v1`, fetch: client.fetch })
  const ask = { model: 'm', messages: [{ role: 'user' as const, content: 'hé' }] }
  return {
    errors: openaiErrors,
    async ask(options) {
      const answered = await sdk.chat.completions.create(ask, options)
      return answered.choices[0]!.message.content!
    },
    async streamed(most, options) {
      let text = ''
      const pieces = await sdk.chat.completions.create({ ...ask, stream: true }, options)
      for await (const piece of pieces) {
        text += piece.choices[0]?.delta.content ?? ''
        if (--most === 0) break
      }
      return text
    },
    upload: (file) => sdk.files.create({ file: file as File, purpose: 'assistants' }),
  }
}

function anthropic(): Sdk {
  const sdk = new Anthropic({ apiKey: 'key-a', baseURL: origin, fetch: client.fetch })
  const ask = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'hé' }] }
  return {
    errors: anthropicErrors,
    async ask(options) {
      const answered = await sdk.messages.create(ask, options)
      return (answered.content[0] as { text: string }).text
    },
    async streamed(most, options) {
      let text = ''
      for await (const piece of await sdk.messages.create({ ...ask, stream: true }, options)) {
        if (piece.type !== 'content_block_delta') continue
        text += (piece.delta as { text: string }).text
        if (--most === 0) break
      }
      return text
    },
    upload: (file) => sdk.beta.files.upload({ file: file as File }),
  }
}

const refuse =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ type: 'error', error: { type: 'e', message: 'no, thanks' } }))
  }

async function failure(call: Promise<unknown>): Promise<Error> {
  try {
    await call
  } catch (error) {
    return error as Error
  }
  throw new Error('the call succeeded')
}

/** The number of requests that `call` makes. */
async function requests(call: () => Promise<unknown>): Promise<number> {
  const before = received.length
  await call()
  return received.length - before
}

for (const [name, make] of Object.entries({ openai, anthropic })) {
  test(`${name}: a call is answered`, async () => {
    assert.equal(await make().ask(), TEXT)
    const { headers, body } = received.at(-1)!
    assert.equal(headers['content-type'], 'application/json')
    assert.equal(headers['content-length'], String(body.length))
    assert.match(body.toString(), /"hé"/)
    const key = headers.authorization ?? headers['x-api-key']
    assert.match(String(key), /^(Bearer )?key-[oa]$/)
  })

  test(`${name}: a stream is read to its end`, async () => {
    assert.equal(await make().streamed(Infinity), TEXT)
  })

  test(`${name}: leaving a stream closes its connection`, async () => {
    const before = closedEarly
    const text =
      name === 'openai'
        ? chat({ content: 'x' })
        : event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'x' } })
    script.push((response) => void stream(response, endless(text)).catch(() => {}))
    assert.equal(await make().streamed(3), 'xxx')
    while (closedEarly === before) await new Promise((resolve) => setImmediate(resolve))
  })

  test(`${name}: 429 and 500 are retried, after the delay that the server sets`, async () => {
    script.push(refuse(429, { 'retry-after': '0.01' }), refuse(500, { 'retry-after-ms': '1' }))
    assert.equal(await requests(() => make().ask()), 3)
    script.push(refuse(429, { 'retry-after-ms': '1' }))
    assert.equal(await requests(() => make().streamed(Infinity)), 2)
  })

  test(`${name}: an error of the provider has its class, status and message`, async () => {
    for (const call of [() => make().ask(), () => make().streamed(1)]) {
      script.push(refuse(400))
      const { errors } = make()
      const error = await failure(call())
      assert.ok(error instanceof errors.BadRequestError, String(error))
      assert.equal(error.status, 400)
      assert.match(error.message, /no, thanks/)
    }
  })

  test(`${name}: a lost connection is retried, then an APIConnectionError`, async () => {
    const lose = (response: ServerResponse): void => void response.destroy()
    script.push(lose)
    assert.equal(await requests(() => make().ask()), 2)
    script.push(lose)
    const error = await failure(make().ask({ maxRetries: 0 }))
    assert.ok(error instanceof make().errors.APIConnectionError)
    assert.equal(error instanceof make().errors.APIConnectionTimeoutError, false)
  })

  test(`${name}: the SDK's timeout and the caller's signal end a call`, async () => {
    const { errors } = make()
    script.push(() => {})
    const late = await failure(make().ask({ timeout: 30, maxRetries: 0 }))
    assert.ok(late instanceof errors.APIConnectionTimeoutError, String(late))
    // Such a call may end before its request arrives.
    script.length = 0
    const controller = new AbortController()
    script.push(() => controller.abort())
    const aborted = await failure(make().ask({ signal: controller.signal }))
    assert.ok(aborted instanceof errors.APIUserAbortError, String(aborted))
  })

  test(`${name}: files are uploaded as a form`, async () => {
    const path = join(folder, `${name}.txt`)
    writeFileSync(path, 'content of the file\n'.repeat(20_000))
    const { errors, upload } = make()
    const sources: [object, number][] = [
      [new File(['small'], 'a.txt', { type: 'text/plain' }), 5],
      [await errors.toFile(Buffer.from('bytes'), 'b.bin'), 5],
      [createReadStream(path), 400_000],
    ]
    for (const [file, size] of sources) {
      await upload(file)
      const { headers, body } = received.at(-1)!
      const form = await new Response(new Uint8Array(body), {
        headers: { 'content-type': headers['content-type']! },
      }).formData()
      assert.equal((form.get('file') as File).size, size)
      // The SDK may stream a form, without knowing its length.
      assert.equal(headers['content-length'] ?? String(body.length), String(body.length))
    }
  })
}
