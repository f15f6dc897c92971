import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  createModelRegistry, MemoryStore, ModelError, providersFromEnvironment, type ModelProvider,
} from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { repairModel } from 'runwright/repair'

function provider(id: string, family?: RegExp): ModelProvider {
  return {
    id,
    description: `all of ${id}`,
    isLanguageModel: true,
    suggestions: ['small', 'large'],
    family,
    create: (name) => new ScriptedModel([], { name: `${id}:${name}`, isLanguageModel: true }),
  }
}

const registry = createModelRegistry({
  providers: [repairModel(), provider('acme', /^acme-/), provider('ollama')],
  defaultModel: 'builtin:repair',
  models: { house: new ScriptedModel([], { name: 'house' }) },
})

for (const { name, becomes } of [
  { name: 'house', becomes: 'house' },
  { name: 'acme:small', becomes: 'acme:small' },
  { name: 'acme:anything', becomes: 'acme:anything' },
  { name: 'acme-2-mini', becomes: 'acme:acme-2-mini' },
  { name: 'ollama:llama3.1:8b', becomes: 'ollama:llama3.1:8b' },
  { name: 'builtin:repair', becomes: 'builtin:repair' },
  { name: undefined, becomes: 'builtin:repair' },
]) {
  test(`${name ?? 'no name'} resolves to ${becomes}`, () => {
    assert.equal(registry.resolve(name).name, becomes)
  })
}

for (const name of [
  'nope',
  'nope:small',
  'acme:',
  '',
  'builtin:other',
  'llama3.1:8b',
  'scripted:demo.json',
  'HOUSE',
  '__proto__',
  'x'.repeat(5_000),
]) {
  test(`${JSON.stringify(name.slice(0, 20))} is refused with a list of the known names`, () => {
    assert.throws(
      () => registry.resolve(name),
      (error) => {
        assert.ok(error instanceof ModelError)
        assert.equal(error.retryable, false)
        assert.match(error.message, /there (?:are|is) .*builtin:repair/)
        assert.ok(error.message.length < 500)
        return true
      },
    )
  })
}

for (const [name, meant] of [
  ['HOUSE', 'house'],
  ['hose', 'house'],
  ['acmee:small', 'acme:small'],
  // A provider of language models has more names than it lists.
  ['acem:large-2026', 'acme:large-2026'],
  ['olama:llama3.1:8b', 'ollama:llama3.1:8b'],
  ['small', 'acme:small'],
  ['lagre', 'acme:large'],
  ['bulitin:repair', 'builtin:repair'],
  ['repair', 'builtin:repair'],
  ['nope', undefined],
  ['nope:tiny', undefined],
  ['acme:', undefined],
  ['', undefined],
  ['__proto__', undefined],
  [`acem:${'x'.repeat(5_000)}`, undefined],
] as const) {
  test(`${JSON.stringify(name.slice(0, 20))} is refused with the hint ${meant}`, () => {
    assert.throws(
      () => registry.resolve(name),
      ({ message }: Error) => {
        const [, hint] = /; did you mean "(.*)"\?$/.exec(message) ?? []
        assert.equal(hint, meant, message)
        return true
      },
    )
  })
}

test('the error lists registered names, built-in programs and providers', () => {
  assert.throws(
    () => registry.resolve('nope'),
    /there is no model "nope" on this host; there are house, builtin:repair, acme:small, acme:large, acme:<model>, ollama:small, ollama:large, ollama:<model>/,
  )
})

const VARIABLES = [
  'OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY', 'OLLAMA_HOST',
]

test('without any model, the error says how to set one up', () => {
  const bare = createModelRegistry({ replay: new MemoryStore() })
  assert.deepEqual(bare.list(), [])
  assert.throws(() => bare.resolve(undefined), ({ message }: Error) => {
    assert.match(message, /^this host has no model: set /)
    const named = message.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g)
    assert.deepEqual(named, VARIABLES)
    assert.match(message, /`providers: providersFromEnvironment\(process\.env\)`/)
    assert.match(message, /`providers: \[repairModel\(\)\]` of runwright\/repair$/)
    return true
  })
})

for (const variable of VARIABLES) {
  test(`${variable} alone sets up a provider`, () => {
    const env = { [variable]: 'http://127.0.0.1:9' }
    assert.equal(providersFromEnvironment(env).length, 1)
  })
}

test('models without a default must be named', () => {
  const named = createModelRegistry({ providers: [provider('acme')] })
  assert.equal(named.list().some((model) => model.default), false)
  assert.throws(
    () => named.resolve(undefined),
    { message: /^must be given, as this host has no default model; there are acme:small, / },
  )
})

test('the list has the default first and marks programs that are not language models', () => {
  assert.deepEqual(
    registry
      .list()
      .map(({ name, provider: id, is_language_model, default: isDefault }) => [
        name,
        id,
        is_language_model,
        isDefault,
      ]),
    [
      ['builtin:repair', 'builtin', false, true],
      ['house', 'host', false, false],
      ['acme:small', 'acme', true, false],
      ['acme:large', 'acme', true, false],
      ['ollama:small', 'ollama', true, false],
      ['ollama:large', 'ollama', true, false],
    ],
  )
})

test('providers never change the default; a host does, even by a bare or unlisted name', () => {
  const defaults = (defaultModel: string) =>
    createModelRegistry({
      providers: [provider('acme', /^acme-/)],
      models: { house: new ScriptedModel([]) },
      defaultModel,
    })
  assert.equal(defaults('acme-2').resolve(undefined).name, 'acme:acme-2')
  for (const [name, first] of [
    ['acme:large', 'acme:large'],
    ['acme-2', 'acme-2'],
    ['acme:other', 'acme:other'],
    ['house', 'house'],
  ] as const) {
    const list = defaults(name).list()
    assert.equal(list[0]!.name, first)
    assert.deepEqual(list.filter((info) => info.default).length, 1)
  }
  const broken = defaults('gone:model')
  assert.throws(() => broken.resolve(undefined), /there is no model "gone:model"/)
  assert.equal(broken.list()[0]!.description, 'not available on this host')
})

test('scripted models require a folder from the host', async () => {
  const scripts = await mkdtemp(join(tmpdir(), 'runwright-registry-'))
  try {
    await writeFile(join(scripts, 'demo.json'), '{"turns":[]}')
    const scripted = createModelRegistry({ scripts })
    const model = scripted.resolve('scripted:demo.json')
    assert.deepEqual(
      [model.name, model.isLanguageModel, model.contextWindow],
      ['scripted:demo.json', false, null],
    )
    assert.throws(() => registry.resolve('scripted:demo.json'), ModelError)
  } finally {
    await rm(scripts, { recursive: true })
  }
})

test('duplicate provider ids, and ids that are not a valid prefix, are refused', () => {
  assert.throws(
    () => createModelRegistry({ providers: [provider('a'), provider('a')] }),
    /two model providers with the id a/,
  )
  assert.throws(
    () => createModelRegistry({ providers: [provider('replay')], replay: new MemoryStore() }),
    /two model providers/,
  )
  assert.throws(() => createModelRegistry({ providers: [provider('a:b')] }), TypeError)
})
