/** Images from requests, tools and files, on their way to the model and through the log. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  anthropicAdapter,
  createHttpProvider,
  defineTool,
  FileStore,
  MemoryStore,
  type AgentEvent,
  type ImagePart,
  type JsonObject,
  type Message,
  type Model,
  type ModelProvider,
  type ModelRequest,
  type RunEngine,
  type RunRecord,
  type ToolFile,
} from 'runwright/agent'
import { MAX_IMAGE_BYTES } from '../../../lib/agent/images.js'
import { Conversation } from '../../../lib/agent/conversation/conversation.js'
import { withFiles } from '../../../lib/agent/run/result-files.js'
import {
  follow, keepOpen, openEngine, runToEnd, scratch, testProvider, type Said,
} from '../../helpers/engine.js'
import { gif, jpeg, png } from '../../helpers/images.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { serve } from '../../helpers/serve.js'

const IMAGE = png(20, 30, 500, 9)
const DATA = IMAGE.toString('base64')
const GIVEN: ImagePart = { media_type: 'image/png', data: DATA }

/** A model that sees images, or does not. */
function looking(
  answer: (request: ModelRequest, call: number) => Said,
  takesImages = true,
): ModelProvider {
  const base = testProvider(answer)
  return { ...base, create: (name): Model => ({ ...base.create(name), takesImages }) }
}

const reads = (path: string) => ({ calls: [{ tool: 'read_file', args: { path } }] })
const imagesIn = (messages: readonly Message[]): readonly ImagePart[] =>
  messages.flatMap((one) => (one.role === 'assistant' ? [] : (one.images ?? [])))

/** A run whose model reads an image; what the model saw, and everything that the run tells. */
async function readingRun(t: TestContext, takesImages: boolean): Promise<{
  readonly seen: readonly Message[]
  readonly events: readonly AgentEvent[]
  readonly records: readonly RunRecord[]
}> {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'plot.png'), IMAGE)
  let seen: readonly Message[] = []
  const provider = looking(({ messages }, call) => {
    seen = messages
    return call === 0 ? reads('plot.png') : {}
  }, takesImages)
  const store = new MemoryStore()
  const { engine } = await openEngine(t, { cwd, store, providers: [provider] })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assertInvariants(events)
  return { seen, events, records: await store.read(details.run_id, 0, 1_000) }
}

test('read_file shows an image to the model, and events do not have it', async (t) => {
  const { seen, events, records } = await readingRun(t, true)
  assert.deepEqual(imagesIn(seen), [GIVEN])
  const result = events.find(({ kind }) => kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  assert.equal(result.payload.output, '[image plot.png image/png, 500 bytes]')
  assert.deepEqual(result.payload.images, [
    { media_type: 'image/png', bytes: 500, name: 'plot.png' },
  ])
  assert.ok(!JSON.stringify(events).includes(DATA))
  assert.ok(JSON.stringify(records).includes(DATA))
})

test('a model that takes no images is told of them, and the log has no room for them', async (t) => {
  const { seen, records } = await readingRun(t, false)
  assert.deepEqual(imagesIn(seen), [])
  assert.ok(!JSON.stringify(records).includes(DATA))
  const [told] = seen.flatMap((one) => (one.role === 'tool' ? [one.output] : []))
  const shown = '[image plot.png image/png, 500 bytes]'
  assert.equal(told, `${shown}\n[not shown: this model takes no images]`)
})

test('a model that takes over gets images that the one before could not see', async (t) => {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'plot.png'), IMAGE)
  const saw: Message[][] = []
  const blind = looking(({ messages }, call) => {
    saw.push([...messages])
    return call === 0 ? reads('plot.png') : { text: 'No.', stop: 'refusal' }
  }, false)
  const sighted = { ...looking(({ messages }) => {
    saw.push([...messages])
    return {}
  }), id: 'other' }
  const other: ModelProvider = {
    ...sighted, create: (name) => ({ ...sighted.create(name), name: `other:${name}` }),
  }
  const { engine } = await openEngine(t, { cwd, providers: [blind, other] })
  await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, fallback_models: ['other:m'],
  })
  const [, second, third] = saw
  assert.match(JSON.stringify(second), /an image is left out: image\/png, 500 bytes; this model/)
  assert.deepEqual([imagesIn(second!), imagesIn(third!)], [[], [GIVEN]])
})

const files = (...list: unknown[]): { output: string; exitCode: number; files: ToolFile[] } => ({
  output: 'out', exitCode: 0, files: list as ToolFile[],
})

test('what a tool gives back is shown by its bytes, appended, or named', () => {
  const { output, images, infos } = withFiles(files(
    { mediaType: 'text/plain', data: jpeg(), name: 'a\nb' },
    { mediaType: 'image/gif', data: gif().toString('base64') },
    { mediaType: 'text/csv', data: Buffer.from('a,b\n1,2'), name: 'table.csv' },
    { mediaType: 'application/json', data: Buffer.from('{"a":1}').toString('base64') },
    { mediaType: 'application/pdf', data: Buffer.from('%PDF-1.7'), name: 'r.pdf' },
    { mediaType: 'image/png', data: Buffer.from('no image') },
  ))
  assert.deepEqual(images.map(({ media_type }) => media_type), ['image/jpeg', 'image/gif'])
  assert.deepEqual(infos, [
    { media_type: 'image/jpeg', bytes: jpeg().length, name: 'a?b' },
    { media_type: 'image/gif', bytes: 32 },
  ])
  assert.deepEqual(output.split('\n'), [
    'out', `[image a?b image/jpeg, ${jpeg().length} bytes]`, '[image image/gif, 32 bytes]',
    '[file table.csv text/csv]', 'a,b', '1,2', '[file application/json]', '{"a":1}',
    '[file r.pdf application/pdf, 8 bytes]', '[file image/png, 8 bytes]',
  ])
})

test('files of a tool may be anything', () => {
  const thrower = { get data(): never { throw new Error('no') } }
  for (const given of [null, 3, {}, { data: 3 }, { data: 'no base64!' }, thrower])
    assert.equal(withFiles(files(given)).output, 'out\n[a file that cannot be read]')
  for (const list of [undefined, null, 'x', {}])
    assert.equal(withFiles({ output: 'out', exitCode: 0, files: list as never }).output, 'out')
})

test('images of one result are bounded in number and bytes', () => {
  const many = Array.from({ length: 100 }, () => ({ mediaType: 'image/png', data: png() }))
  const { images, output } = withFiles(files(...many))
  assert.equal(images.length, 8)
  assert.match(output, /too large, or one of too many\]/)
  assert.match(output, /\[36 more files\]$/)
  const large = { mediaType: 'image/png', data: png(2, 2, MAX_IMAGE_BYTES) }
  assert.equal(withFiles(files(large, large, large)).images.length, 2)
  const larger = { mediaType: 'image/png', data: png(2, 2, MAX_IMAGE_BYTES + 1) }
  assert.equal(withFiles(files(larger)).images.length, 0)
})

test('a conversation keeps the newest images, and those of the goal', () => {
  const conversation = new Conversation()
  const image = (fill: number, bytes = 64): ImagePart =>
    ({ media_type: 'image/png', data: png(1, 1, bytes, fill).toString('base64') })
  const show = (fill: number, bytes?: number): void =>
    conversation.add({
      role: 'tool', call_id: `c${fill}`, tool: 'x', output: '', exit_code: 0,
      images: [image(fill, bytes)],
    })
  conversation.add({ role: 'user', text: 'Goal', images: [image(0)] })
  for (let i = 1; i <= 40; i++) show(i)
  const kept = (): readonly ImagePart[] => {
    const fitted = conversation.fit(Infinity)
    return fitted.fits ? imagesIn(fitted.messages) : []
  }
  const newest = Array.from({ length: 15 }, (_, i) => image(26 + i))
  assert.deepEqual(kept(), [image(0), ...newest])
  for (let i = 41; i <= 45; i++) show(i, MAX_IMAGE_BYTES)
  const characters = kept().reduce((sum, { data }) => sum + data.length, 0)
  assert.ok(characters <= 15_000_000 && kept().length === 3, `${kept().length}`)
})

test('a request has images, which the model sees with the goal, also when it is retried', async (t) => {
  const saw: (readonly ImagePart[])[] = []
  const provider = looking(({ messages }) => {
    saw.push(imagesIn(messages))
    return {}
  })
  const store = new MemoryStore()
  const { engine } = await openEngine(t, { store, providers: [provider] })
  const request = { goal: 'shell: false', max_iterations: 1, images: [GIVEN] }
  const { details, events } = await runToEnd(engine, request as JsonObject)
  assert.equal(details.images, 1)
  assert.ok(!JSON.stringify(events).includes(DATA))
  const [first] = await store.read(details.run_id, 0, 1)
  assert.equal(first?.v, 4)
  const again = await engine.retry(details.run_id)
  await follow(engine, again.run_id)
  const fork = await engine.fork(details.run_id, { workspace: 'in_place', message: 'Go on.' })
  await follow(engine, fork.details.run_id)
  assert.deepEqual(saw, [[GIVEN], [GIVEN], [GIVEN]])
})

test('images of a request are checked', async (t) => {
  const { engine } = await openEngine(t, { providers: [looking(() => ({}))] })
  const blind = await openEngine(t, { providers: [testProvider(() => ({}))] })
  const large = png(2, 2, MAX_IMAGE_BYTES + 1).toString('base64')
  const most = png(2, 2, MAX_IMAGE_BYTES).toString('base64')
  const refuses = async (to: RunEngine, images: unknown, pointer: string): Promise<void> => {
    const request = { goal: 'shell: false', images } as JsonObject
    await assert.rejects(to.create(request), (error: object) => {
      const { message, violations } = error as {
        message: string
        violations: readonly { pointer: string }[]
      }
      assert.deepEqual(violations.map((one) => one.pointer), [pointer])
      assert.ok(message.length < 1_000)
      return true
    })
  }
  const of = (data: string, media_type = 'image/png'): JsonObject => ({ data, media_type })
  await refuses(engine, [], '/images')
  await refuses(engine, [{ data: DATA }], '/images/0/media_type')
  await refuses(engine, [of(DATA), of('no base64!')], '/images/1/data')
  await refuses(engine, [of(DATA, 'image/jpeg')], '/images/0/media_type')
  await refuses(engine, [of(DATA, 'image/tiff')], '/images/0/media_type')
  await refuses(engine, [of(Buffer.from('text').toString('base64'))], '/images/0/media_type')
  await refuses(engine, [of(large)], '/images/0/data')
  await refuses(engine, [of(most), of(most), of(DATA)], '/images')
  await refuses(engine, Array.from({ length: 9 }, () => of(DATA)), '/images')
  await refuses(blind.engine, [of(DATA)], '/images')
})

test('the largest images of a result are stored in files, and read again', async (t) => {
  const large = png(2, 2, MAX_IMAGE_BYTES)
  const tool = defineTool({
    name: 'large', description: 'Two large images.', parameters: { type: 'object' },
    execute: () => files({ mediaType: '', data: large }, { mediaType: '', data: large }),
  })
  const directory = scratch(t)
  const calls = [{ tool: 'large', args: {} }]
  const provider = looking((_, call) => (call === 0 ? { calls } : {}))
  const { engine } = await openEngine(t, {
    store: new FileStore({ directory }), providers: [provider], tools: [tool],
  })
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  await engine.close()
  const store = new FileStore({ directory })
  await store.open()
  const records = await store.read(details.run_id, 0, 1_000)
  await store.close()
  const [result] = records.filter(({ kind }) => kind === 'tool_result')
  const data = large.toString('base64')
  const stored = result?.kind === 'tool_result' ? (result.private?.images ?? []) : []
  assert.deepEqual(stored.map((one) => one.data === data), [true, true])
})

/** A tool that returns an image of so many calls. */
const shot = defineTool({
  name: 'shot',
  description: 'A screenshot.',
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  effect: 'read',
  execute: ({ n }) => ({
    output: 'taken', exitCode: 0,
    files: [{ mediaType: 'image/png', data: png(10, 10, 100, n) }],
  }),
})

test('a run that goes on after a crash sends the same images byte by byte', async (t) => {
  const cwd = scratch(t)
  const bodies: string[] = []
  await using served = await serve((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      bodies.push(body)
      const turns = body.split('"role":"assistant"').length
      const id = `toolu_00000000${turns}`
      const use = { type: 'tool_use', id, name: 'shot', input: { n: turns } }
      const content = turns < 4 ? [use] : [{ type: 'text', text: 'Seen.' }]
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({
        type: 'message', content, stop_reason: turns < 4 ? 'tool_use' : 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      }))
    })
  })
  await using provider = createHttpProvider(anthropicAdapter({ promptCaching: false }), {
    id: 'test', baseUrl: served.origin, stream: false, images: true,
  })
  const options = { cwd, providers: [provider], tools: [shot], defaultModel: 'test:m' }
  const store = keepOpen(new MemoryStore())
  const counts: number[] = []
  const append = store.append.bind(store)
  store.append = (runId, records) => {
    counts.push(records.at(-1)!.seq)
    return append(runId, records)
  }
  const { engine } = await openEngine(t, { ...options, store })
  const request = { goal: 'shell: false', max_iterations: 1, images: [GIVEN] } as JsonObject
  const { details } = await runToEnd(engine, request)
  const whole = bodies.splice(0)
  assert.equal(whole.length, 4)
  for (let n = 1; n < 4; n++)
    assert.ok(whole[3]!.includes(png(10, 10, 100, n).toString('base64')))
  assert.ok(whole.every((body) => body.includes(DATA)))
  const records = await store.read(details.run_id, 0, 1_000)
  await engine.close()
  for (const count of counts.slice(0, -1)) {
    const directory = scratch(t)
    const begun = new FileStore({ directory })
    await begun.open()
    await begun.append(details.run_id, records.slice(0, count) as RunRecord[])
    await begun.close()
    const next = await openEngine(t, { ...options, store: new FileStore({ directory }) })
    await follow(next.engine, details.run_id)
    const sent = bodies.splice(0)
    if (sent.length > 0) assert.deepEqual(sent, whole.slice(-sent.length), `after ${count}`)
    await next.engine.close()
  }
})
