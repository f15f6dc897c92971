/** What the process was given as a credential is in nothing that it stores, sends or prints. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import {
  createHttpProvider,
  defineTool,
  FileStore,
  ModelError,
  openAiChatAdapter,
  openMcpServer,
  RunEngine,
  type Span,
} from 'runwright/agent'
import { AsyncClient, BasicAuth, Client, MockTransport, Response } from 'runwright/http'
import { bearerKeys, createRunService, RunServiceClient } from 'runwright/server'
import { EVENT_KINDS } from '../../lib/server/describe/event-schemas.js'
import { tiny } from '../agent/mcp/support.js'
import { modelRequest } from '../agent/models/exchange.js'
import { scratch, testProvider, type Said } from '../helpers/engine.js'
import { Random } from '../helpers/random.js'
import { assertNoPart, givenSecret, letters, type Secret } from '../helpers/secrets.js'
import { openService, SocketClient } from './open-service.js'
import { openReceiver } from './webhooks/receiver.js'

const random = new Random(20_261_122)
const plain = (): Secret => givenSecret(random, true)
const whsec = Buffer.from(letters(random, 32)).toString('base64')

const GIVEN = {
  caller: plain(),
  provider: plain(),
  'header of the provider': plain(),
  'password of the address': plain(),
  'bearer of a tool server': plain(),
  'variable of a tool server': plain(),
  'argument of a tool server': plain(),
  host: givenSecret(random),
  environment: plain(),
  webhook: { kind: 'a webhook', text: whsec, forms: [whsec], write: () => whsec } as Secret,
} as const
const secrets = Object.entries(GIVEN).map(([name, secret]) => ({ ...secret, kind: name }))

/** All secrets, in all forms, with a cut of `at` characters through each of them in turn. */
function texts(at: number): string {
  return secrets
    .map((secret) => {
      const written = secret.write(random)
      const before = Math.max(0, at - random.integer(1, written.length - 1))
      return `${'. '.repeat(at).slice(0, before)} ${written} `
    })
    .join('\n')
}

const everything = (): string => secrets.map((secret) => `<${secret.write(random)}>`).join('\n')

/** The turns of a model that does whatever shows a secret. */
function hostile(turn: number): Said {
  const bash = (command: string): NonNullable<Said['calls']>[number] => ({
    tool: 'bash',
    args: { command },
  })
  switch (turn) {
    case 0:
      return {
        text: everything(),
        calls: [
          bash('cat short'),
          bash('cat long'),
          bash('cat long >&2; exit 3'),
          { tool: 'read_file', args: { path: 'short', offset: 2, limit: 3 } },
          { tool: 'search_files', args: { pattern: '. .' } },
          { tool: 'own', args: { how: 'say' } },
          { tool: 'own', args: { how: 'throw' } },
        ],
      }
    case 1:
      return {
        calls: [
          { tool: GIVEN.host.text, args: {} },
          { tool: `${'x'.repeat(250)}${GIVEN.caller.text}`, args: {} },
          { tool: 'own', args: { how: GIVEN.provider.text } },
          { tool: 'own', args: { [GIVEN.provider.text]: 1 } },
          { tool: 'own', args: { how: 'say' }, call_id: GIVEN.environment.text },
          { tool: 'edit_file', args: { path: 'short', old_text: 'END', new_text: 'THE END' } },
          bash('cp short copy'),
        ],
      }
    case 2:
      return { text: 'done' }
    default:
      throw new ModelError('ERR_AGENT_MODEL', `refused: ${texts(8_000)}`, { retryable: false })
  }
}

test('a given credential is in nothing that a service stores, sends, traces or logs', async (t) => {
  process.env['RUNWRIGHT_TEST_API_KEYS'] = `ci=${GIVEN.environment.text}`
  t.after(() => delete process.env['RUNWRIGHT_TEST_API_KEYS'])
  const written: Record<string, string[]> = {}
  const note = (channel: string, ...items: unknown[]): void => {
    for (const item of items) {
      const text = typeof item === 'string' ? item : JSON.stringify(item)
      // Most of it is filler, which would only take time to search.
      ;(written[channel] ??= []).push(text.replaceAll(/(?:\. ){9,}/g, '…'))
    }
  }
  const onWarning = (warning: Error): void => note('warnings', String(warning.stack))
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const [cwd, data] = [scratch(t), scratch(t)]
  const receiver = await openReceiver(t)
  const seen: Span[] = []
  await using service = await openService({
    authorize: bearerKeys({ alice: GIVEN.caller.text }),
    onLog: (line) => note('log lines', line),
    webhooks: {
      directory: join(data, 'webhooks'),
      endpoints: [
        {
          url: receiver.url,
          secret: `whsec_${whsec}`,
          kinds: EVENT_KINDS,
          allowPrivate: true,
        },
      ],
    },
    engine: {
      store: new FileStore({ directory: join(data, 'runs') }),
      roots: [cwd],
      defaultModel: 'test:m',
      secrets: [GIVEN.host.text],
      tracer: {
        startSpan: (span) => void seen.push(span),
        addEvent: (_, event) => note('spans', event),
        endSpan: ({ name, attributes, statusMessage }) =>
          note('spans', [name, attributes, statusMessage]),
      },
      providers: [
        testProvider((request, turn) => {
          note('prompts', request.messages)
          for (const piece of everything().match(/[^]{1,5}/g) ?? []) request.onDelta?.(piece)
          return hostile(turn)
        }),
        createHttpProvider(openAiChatAdapter(), {
          id: 'other',
          apiKey: GIVEN.provider.text,
          baseUrl: `https://me:${GIVEN['password of the address'].text}@models.test/v1`,
          headers: { 'x-gateway-token': GIVEN['header of the provider'].text },
        }),
      ],
      tools: [
        defineTool({
          name: 'own',
          description: 'Shows secrets.',
          parameters: {
            type: 'object',
            properties: { how: { type: 'string' } },
            additionalProperties: true,
          },
          effect: 'read',
          execute: async ({ how }) => {
            if (how === 'throw') throw new Error(texts(32_768))
            return { output: texts(32_768), exitCode: 0 }
          },
        }),
      ],
      mcpServers: [
        {
          name: 'remote',
          url: 'http://127.0.0.1:9/mcp',
          bearer: GIVEN['bearer of a tool server'].text,
          required: false,
        },
        {
          name: 'local',
          command: '/nonexistent',
          args: ['--token', GIVEN['argument of a tool server'].text],
          env: { ANY_KEY: GIVEN['variable of a tool server'].text },
          required: false,
        },
      ],
    },
  })
  const short = `${everything()}\nEND\n`
  writeFileSync(join(cwd, 'short'), short)
  // The output of a command keeps 32 KiB at both ends.
  const line = '. '.repeat(400)
  writeFileSync(join(cwd, 'long'), `${texts(32_768)}\n${`${line}\n`.repeat(200)}${texts(800)}`)
  const headers = { authorization: `Bearer ${GIVEN.caller.text}` }
  const body = { goal: 'shell: cat short long; false', hitl_enabled: true }
  const { json: started } = await service.call('POST', '/api/runs', { headers, body })
  const path = `/api/runs/${started.run_id}`
  const socket = await SocketClient.connect(
    service.port,
    `/api/ws/${started.run_id}?deltas=1`,
    headers,
  )
  const frames: { readonly kind: string }[] = []
  for (;;) {
    const event = await socket.event()
    frames.push(event)
    if (event.kind === 'human_check_required') {
      note('a gate', (await service.call('GET', path, { headers })).text)
      const answer = { decision: 'approve', feedback: everything() }
      await service.call('POST', `${path}/resume`, { headers, body: answer })
    }
    if (event.kind === 'run_end') break
  }
  socket[Symbol.dispose]()
  note('web socket', ...frames)
  await receiver.until(1)
  const sse = { ...headers, accept: 'text/event-stream' }
  note('event stream', (await service.call('GET', `${path}/events`, { headers: sse })).text)
  for (const route of [path, '/api/runs', `${path}/events?limit=1000`, '/api/models', '/api/goals'])
    note('answers', (await service.call('GET', route, { headers })).text)
  const refused = { goal: `shell: echo ${GIVEN.host.text}`, metadata: { a: GIVEN.provider.text } }
  note('a refusal', (await service.call('POST', '/api/runs', { headers, body: refused })).text)
  const { length } = frames.filter(({ kind }) => kind !== 'model_delta')
  await receiver.until(length)
  note('webhooks', ...receiver.received.map(({ raw }) => raw))
  await service.service.close({ graceMs: 0 })
  for (const name of readdirSync(data, { recursive: true, withFileTypes: true }))
    if (name.isFile()) note('stored files', readFileSync(join(name.parentPath, name.name), 'latin1'))
  assert.ok(seen.length > 0)
  for (const channel of ['web socket', 'event stream', 'answers', 'webhooks', 'stored files'])
    assert.ok(written[channel]!.join().includes('[secret removed]'), channel)
  const shown: unknown[] = []
  for (const [channel, items] of Object.entries(written)) {
    for (const secret of secrets) {
      try {
        assertNoPart(items.join('\n'), secret, channel)
      } catch (error) {
        shown.push((error as Error).message)
      }
    }
  }
  assert.deepEqual(shown, [])
  // What runs is not what is shown: the files are as the model meant them.
  assert.equal(readFileSync(join(cwd, 'copy'), 'utf8'), short.replace('END', 'THE END'))
})

test('no public object shows a secret, however it is printed', async (t) => {
  const key = plain()
  const store = new FileStore({ directory: join(scratch(t), 'runs') })
  const provider = createHttpProvider(openAiChatAdapter(), {
    id: 'p',
    apiKey: key.text,
    headers: { 'x-api-key': key.text },
    transport: new MockTransport(() => new Response(401, { text: `bad key ${key.text}` })),
  })
  const root = scratch(t)
  const webhook = `whsec_${Buffer.from(key.text.padEnd(32, 'x')).toString('base64')}`
  const mcp = { name: 'm', url: 'http://127.0.0.1:9/mcp', bearer: key.text }
  const engineOptions = {
    store,
    roots: [root],
    secrets: [key.text],
    providers: [provider],
    mcpServers: [{ ...mcp, required: false, onWarning: () => undefined }],
  }
  await using engine = await RunEngine.open(engineOptions)
  await using service = await createRunService({
    engine,
    authorize: bearerKeys({ alice: key.text }),
    webhooks: {
      directory: scratch(t),
      endpoints: [{ url: 'https://hooks.test/a', secret: webhook }],
    },
  })
  const auth = { auth: new BasicAuth('me', key.text), headers: { authorization: key.text } }
  using client = new Client(auth)
  await using asyncClient = new AsyncClient(auth)
  await using remote = new RunServiceClient({ baseUrl: 'http://127.0.0.1:9', key: key.text })
  const server = await openMcpServer(tiny('good', { env: { API_KEY: key.text } }))
  t.after(() => server.close())
  const model = provider.create('m')
  const failed = await model
    .complete(modelRequest())
    .catch((error: unknown) => error)
  const unreachable = await openMcpServer(mcp).catch((error: unknown) => error)
  const shown: Readonly<Record<string, unknown>> = {
    'bearerKeys()': bearerKeys({ alice: key.text }),
    provider,
    model,
    'an error of the model': failed,
    'an error of a tool server': unreachable,
    engine,
    service,
    client,
    asyncClient,
    remote,
    server,
    auth: auth.auth,
  }
  for (const [name, object] of Object.entries(shown)) {
    const texts = [
      inspect(object, { depth: 10, showHidden: true, getters: true }),
      String(object),
      JSON.stringify(object) ?? '',
    ]
    for (let at: unknown = object; at instanceof Error; at = at.cause)
      texts.push(at.message, String(at.stack), inspect(at, { depth: 10, showHidden: true }))
    for (const text of texts) assertNoPart(text, { ...key, kind: 'the key' }, name)
  }
})
