import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  InvalidRequestError,
  MemoryStore,
  ModelError,
  type JsonObject,
  type RunRecord,
} from 'runwright/agent'
import { valuesInContext } from '../../../lib/agent/redaction/contexts.js'
import { secretsOfEnvironment } from '../../../lib/agent/redaction/environment.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { REDACTED } from '../../../lib/internal/errors.js'
import { follow, openEngine, runToEnd, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

/** Deterministic letters and digits that look like those of a key. */
const noise = (length: number): string =>
  Array.from({ length }, (_, i) => 'aB3dE5gH7jK9mN'[(i * 5) % 14]).join('')

const shapes: Readonly<Record<string, string>> = {
  'OpenAI project': `sk-proj-${noise(60)}`,
  'OpenAI': `sk-${noise(48)}`,
  'Anthropic': `sk-ant-api03-${noise(40)}-${noise(40)}`,
  'OpenRouter': `sk-or-v1-${noise(64)}`,
  'Stripe': `sk_live_${noise(24)}`,
  'Groq': `gsk_${noise(52)}`,
  'xAI': `xai-${noise(80)}`,
  'Hugging Face': `hf_${noise(34)}`,
  'Google': `AIza${noise(35)}`,
  'GitHub': `ghp_${noise(36)}`,
  'GitHub fine-grained': `github_pat_${noise(22)}_${noise(59)}`,
  'GitLab': `glpat-${noise(20)}`,
  'npm': `npm_${noise(36)}`,
  'PyPI': `pypi-${noise(100)}`,
  'Slack': `xoxb-${'1234567890'}-${noise(24)}`,
  'AWS': 'AKIA' + 'ABCDEFGH234567XY',
  'JSON Web Token': `eyJ${noise(20)}.eyJ${noise(30)}.${noise(43)}`,
  'private key':
    `-----BEGIN RSA PRIVATE KEY-----\n${noise(64)}\n${noise(64)}\n` +
    '-----END RSA PRIVATE KEY-----',
}
const redactor = new Redactor([])

for (const [name, key] of Object.entries(shapes)) {
  test(`a text of the shape of a key is removed: ${name}`, () => {
    for (const [before, after] of [
      ['', ''],
      ['key=', ' and more'],
      ['"', '"'],
      ['(', ')'],
      ['x\n', '\ny'],
    ] as const) {
      assert.equal(redactor.text(`${before}${key}${after}`), `${before}${REDACTED}${after}`)
    }
    assert.equal(redactor.text(`${key} ${key}`), `${REDACTED} ${REDACTED}`)
  })
}

for (const text of [
  'sk-learn and sk-learning-rate-scheduler are words',
  'task-force, ask-me-anything-you-want-to-know-about-it',
  'the commit 3323b5743f0c9e4e5f2a1b6c7d8e9f0a1b2c3d4e',
  'AKIA is short, and so is ghp_abc',
  'npm_config_registry and npm_lifecycle_event',
  'hf_hub_download(repo_id)',
  'eyJust.a.word',
  '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
  'sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==',
]) {
  test(`a text without a key is unchanged: ${text.slice(0, 50)}`, () => {
    assert.equal(redactor.text(text), text)
  })
}

test('a secret named by the host is removed, also in its JSON and URL encodings', () => {
  const secret = 'pass "word"/ä+1'
  const own = new Redactor([secret])
  assert.equal(own.text(`a ${secret} b`), `a ${REDACTED} b`)
  assert.equal(own.text(JSON.stringify({ a: secret })), `{"a":"${REDACTED}"}`)
  assert.equal(
    own.text(`https://x.test/?p=${encodeURIComponent(secret)}`),
    `https://x.test/?p=${REDACTED}`,
  )
})

test('if one secret is a prefix of another, the longer one is removed completely', () => {
  const own = new Redactor(['secret', 'secret-and-more'])
  assert.equal(own.text('secret-and-more'), REDACTED)
})

test('names and strings are redacted at any depth; a clean value is the same object', () => {
  const own = new Redactor(['hunter22'])
  const clean = { a: [1, null, { b: 'x' }] }
  assert.equal(own.value(clean), clean)
  const dirty = { list: ['hunter22', { hunter22: true, deep: { er: 'is hunter22.' } }], n: 1 }
  assert.deepEqual(own.value(dirty), {
    list: [REDACTED, { [REDACTED]: true, deep: { er: `is ${REDACTED}.` } }],
    n: 1,
  })
})

test('values of variables with telling names are secrets; words, numbers and paths are not', () => {
  const env = {
    OPENAI_API_KEY: 'k-1234567890',
    DB_PASSWORD: 'correct horse 1',
    github_token: 'Tok3nTok3n',
    MY_SECRET: 'x9x9x9x9',
    SIGNING_KEY: 'abcDEF123',
    SSH_AUTH_SOCK: '/tmp/agent.1',
    GOOGLE_APPLICATION_CREDENTIALS: '/home/me/key.json',
    POSTGRES_PASSWORD: 'postgres',
    MAX_TOKENS: '100000000',
    EMPTY_TOKEN: '',
    KEYBOARD: 'us-intl-1234',
    AUTHOR: 'A. U. Thor 123',
    PATH: '/bin:/usr/bin',
  }
  const found = secretsOfEnvironment(env, valuesInContext)
  assert.deepEqual(found.values, [
    'k-1234567890',
    'correct horse 1',
    'Tok3nTok3n',
    'x9x9x9x9',
    'abcDEF123',
  ])
})

const HOST = 'host-secret-1234'

/** Everything stored of a run, as JSON. */
async function stored(store: MemoryStore, runId: string): Promise<readonly RunRecord[]> {
  return await store.read(runId, 0, 100_000)
}

test('a secret that a tool reads reaches neither the log, nor the model, nor a diff', async (t) => {
  const store = new MemoryStore()
  const key = shapes['Anthropic'] as string
  const heard: string[] = []
  const turns: readonly Said[] = [
    {
      calls: [
        { tool: 'read_file', args: { path: '.env' } },
        { tool: 'bash', args: { command: 'cat .env' } },
      ],
    },
    {
      text: 'I use a key',
      calls: [
        { tool: 'edit_file', args: { path: '.env', old_text: 'MODE=a', new_text: 'MODE=b' } },
      ],
    },
    { stop: 'refusal' },
  ]
  const provider = testProvider((request, n) => {
    heard.push(JSON.stringify(request.messages))
    return turns[n] ?? {}
  })
  const { engine, cwd } = await openEngine(t, { store, providers: [provider], secrets: [HOST] })
  writeFileSync(join(cwd, '.env'), `KEY=${key}\nMODE=a\nOTHER=${HOST}\n`)
  const { events, details } = await runToEnd(engine, { goal: 'shell: cat .env; false' })
  assertInvariants(events)
  const all = JSON.stringify([await stored(store, details.run_id), events, details, heard])
  assert.ok(!all.includes(key))
  assert.ok(!all.includes(HOST))
  assert.ok(all.includes(REDACTED))
  // The file itself has the requested change and no other.
  assert.equal(readFileSync(join(cwd, '.env'), 'utf8'), `KEY=${key}\nMODE=b\nOTHER=${HOST}\n`)
})

for (const [name, args] of [
  ['a secret', { path: 'a', content: `x ${HOST}` }],
  ['the mark of a secret', { path: 'a', content: `x ${REDACTED}` }],
] as const) {
  test(`a call whose arguments contain ${name} does not run and returns the reason`, async (t) => {
    const store = new MemoryStore()
    let heard = ''
    const provider = testProvider((request, n) => {
      const last = request.messages.at(-1)
      if (last?.role === 'tool') heard = last.output
      return n === 0 ? { calls: [{ tool: 'write_file', args }] } : { stop: 'refusal' }
    })
    const { engine, cwd } = await openEngine(t, { store, providers: [provider], secrets: [HOST] })
    writeFileSync(join(cwd, 'a'), 'as it was')
    const { events, details } = await runToEnd(engine, { goal: 'shell: false', approval: 'writes' })
    assertInvariants(events)
    assert.equal(readFileSync(join(cwd, 'a'), 'utf8'), 'as it was')
    assert.match(heard, /^Not run: the arguments hold a key/)
    assert.ok(!JSON.stringify(await stored(store, details.run_id)).includes(HOST))
  })
}

test('a provider’s own parts that contain a secret are not logged', async (t) => {
  const store = new MemoryStore()
  const inner = testProvider(() => ({ stop: 'refusal' }))
  const model = inner.create('m')
  const provider = {
    ...inner,
    create: () => ({
      ...model,
      complete: async (request: Parameters<typeof model.complete>[0]) => {
        const turn = await model.complete(request)
        const parts = { format: 'test', value: [{ thinking: `the key is ${HOST}` }] }
        return {
          ...turn,
          reasoning: `think ${HOST}`,
          message: { ...turn.message, text: HOST, parts },
        }
      },
    }),
  }
  const { engine } = await openEngine(t, { store, providers: [provider], secrets: [HOST] })
  const { details } = await runToEnd(engine, { goal: 'shell: false' })
  const records = await stored(store, details.run_id)
  assert.ok(!JSON.stringify(records).includes(HOST))
  const turn = records.find((record) => record.kind === 'model_turn')
  assert.ok(turn?.kind === 'model_turn')
  assert.equal(turn.payload.text, REDACTED)
  assert.equal(turn.private?.message.parts, undefined)
})

for (const [name, fault] of [
  ['a bug', new RangeError(`cannot use ${HOST}`)],
  ['a provider', new ModelError('ERR_AGENT_MODEL', `refused ${HOST}`, { retryable: false })],
] as const) {
  test(`errors and tracebacks of ${name} are redacted`, async (t) => {
    const store = new MemoryStore()
    const provider = testProvider(() => {
      throw fault
    })
    const { engine } = await openEngine(t, { store, providers: [provider], secrets: [HOST] })
    const { details, events } = await runToEnd(engine, { goal: 'shell: false' })
    assert.match(details.error?.message ?? '', /\[secret removed\]/)
    assert.match(details.error?.traceback ?? '', /\[secret removed\]/)
    assert.ok(
      !JSON.stringify([details, events, await stored(store, details.run_id)]).includes(HOST),
    )
  })
}

test('secret variables are redacted by their values when the engine opened', async (t) => {
  process.env['RUNWRIGHT_TEST_TOKEN'] = 'Zx81-Zx81-Zx81'
  t.after(() => delete process.env['RUNWRIGHT_TEST_TOKEN'])
  const provider = testProvider((_, n) =>
    n === 0
      ? {
          calls: [
            {
              tool: 'bash',
              args: { command: `cat /proc/${process.pid}/environ; echo Zx81-"Zx81"-Zx81` },
            },
          ],
        }
      : { stop: 'refusal' },
  )
  const { engine } = await openEngine(t, { providers: [provider] })
  const { events } = await runToEnd(engine, { goal: 'shell: false' })
  assert.ok(!JSON.stringify(events).includes('Zx81-Zx81-Zx81'))
  assert.ok(JSON.stringify(events).includes(REDACTED))
})

for (const [pointer, request] of [
  ['/goal', { goal: `shell: curl -H "x: ${HOST}" localhost` }],
  ['/check', { goal: 'tidy up', check: `test ${HOST}` }],
  ['/metadata', { goal: 'shell: true', metadata: { key: shapes['GitHub'] as string } }],
] as const) {
  test(`a start request with a secret in ${pointer} is refused without repeating it`, async (t) => {
    const { engine } = await openEngine(t, { secrets: [HOST] })
    await assert.rejects(engine.create(request as JsonObject), (error) => {
      assert.ok(error instanceof InvalidRequestError)
      assert.deepEqual(error.violations.map((violation) => violation.pointer), [pointer])
      assert.ok(!error.message.includes(HOST))
      return true
    })
  })
}

async function atToolGate(
  t: TestContext,
): Promise<{
  store: MemoryStore
  engine: Awaited<ReturnType<typeof openEngine>>['engine']
  runId: string
}> {
  const store = new MemoryStore()
  const provider = testProvider((_, n) =>
    n === 0
      ? { calls: [{ tool: 'bash', args: { command: 'true' }, call_id: 'b' }] }
      : { stop: 'refusal' },
  )
  const { engine } = await openEngine(t, { store, providers: [provider], secrets: [HOST] })
  const { details } = await engine.create({ goal: 'shell: false', approval: 'all' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  return { store, engine, runId: details.run_id }
}

test('feedback at a gate is redacted; edits that contain a secret are refused', async (t) => {
  const { store, engine, runId } = await atToolGate(t)
  const edits = { b: { args: { command: `echo ${HOST}` } } }
  await assert.rejects(engine.resume(runId, { decision: 'approve', edits }), {
    code: 'ERR_AGENT_INVALID_REQUEST',
  })
  await engine.resume(runId, { decision: 'reject', feedback: `use ${HOST} instead` })
  await follow(engine, runId)
  const text = JSON.stringify(await stored(store, runId))
  assert.ok(!text.includes(HOST))
  assert.match(text, /use \[secret removed\] instead/)
})

test('a secret of fewer than 6 characters is refused by name', async (t) => {
  await assert.rejects(
    openEngine(t, { secrets: ['long enough', 'short'] }),
    /secrets\[1\] must be a string of at least 6/,
  )
})

test('a value of any depth is redacted, and what is too deep to be searched is removed', () => {
  const redactor = new Redactor([])
  let deep: unknown = 'end'
  for (let i = 0; i < 100_000; i++) deep = [deep]
  assert.equal(redactor.findsIn(deep), true)
  assert.match(JSON.stringify(redactor.value({ deep })), /\[secret removed\]/)
})

test('edits that are nested too deep are refused', async (t) => {
  const { engine, runId } = await atToolGate(t)
  let deep: JsonObject = {}
  for (let i = 0; i < 100_000; i++) deep = { deep }
  const edits = { b: { args: { command: 'true', deep } } }
  await assert.rejects(engine.resume(runId, { decision: 'approve', edits }), {
    code: 'ERR_AGENT_INVALID_REQUEST',
  })
})
