import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { defineTool, MemoryStore, RunEngine, type EngineOptions, type Tool } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { openEngine } from '../../helpers/engine.js'

const tool = (name: string, more: object = {}): Tool =>
  defineTool({
    name,
    description: `The tool ${name}.`,
    parameters: { type: 'object' },
    execute: () => 'mine',
    ...more,
  })

const provider = (id: string): NonNullable<EngineOptions['providers']>[number] => ({
  id,
  description: '',
  isLanguageModel: false,
  suggestions: [],
  create: () => new ScriptedModel([]),
})

const goal = { name: 'mine', description: '', usage: '', resolve: () => assert.fail('resolved') }

for (const [name, options, message] of [
  ['two tools of one name', { tools: [tool('a'), tool('b'), tool('a')] }, /two tools .* name a/],
  ['a tool with a shipped name', { tools: [tool('bash')] }, /^bash is a shipped tool.*replace/],
  ['a replacement twice', { tools: [tool('bash', { replace: true }), tool('bash')] }, /two tools/],
  ['a replacement of nothing', { tools: [tool('bahs', { replace: true })] }, /replaces nothing/],
  ['an object that is no tool', { tools: [{ name: 'a' }] }, /tools\[0\] must be a tool/],
  ['null as tool', { tools: [null] }, /tools\[0\] must be an object, got null/],
  [
    'two MCP servers of one name',
    { mcpServers: [{ name: 'a', command: 'x' }, { name: 'a', command: 'y' }] },
    /two MCP servers with the name a/,
  ],
  [
    'MCP servers whose tools could have one name',
    { mcpServers: [{ name: 'a', command: 'x' }, { name: 'a__b', command: 'y' }] },
    /tools of the MCP servers a and a__b could have the same name/,
  ],
  [
    'MCP servers of which one ends in a line',
    { mcpServers: [{ name: 'a_', command: 'x' }, { name: 'a', command: 'y' }] },
    /tools of the MCP servers a and a_ could have the same name/,
  ],
  [
    'a tool with the prefix of an MCP server',
    { tools: [tool('docs__find')], mcpServers: [{ name: 'docs', command: 'x' }] },
    /tool docs__find is named like tools of the MCP server docs/,
  ],
  ['two goals of one name', { goals: [goal, goal] }, /goal name "mine" is taken/],
  ['a goal with a shipped name', { goals: [{ ...goal, name: 'pytest' }] }, /"pytest" is taken/],
  ['two providers of one id', { providers: [provider('a'), provider('a')] }, /two .* with the id a/],
  ['a provider with a built-in id', { providers: [provider('replay')] }, /with the id replay/],
] as const) {
  test(`an engine with ${name} is not opened`, async () => {
    const store = new MemoryStore()
    await assert.rejects(
      RunEngine.open({ ...(options as object), store, roots: [tmpdir()] }),
      { name: 'TypeError', message },
    )
  })
}

test('a tool with replace: true takes the place of the shipped one', async (t) => {
  const { engine } = await openEngine(t, { tools: [tool('bash', { replace: true }), tool('own')] })
  const shown = engine.tools().filter(({ name }) => name === 'bash' || name === 'own')
  assert.deepEqual(shown.map(({ description }) => description), ['The tool bash.', 'The tool own.'])
})

test('a schema keyword that has no effect is refused', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string', minLenght: 1 } } }
  assert.throws(() => tool('a', { parameters }), {
    name: 'TypeError',
    message:
      'minLenght is not an option of tool a: parameters.properties.city; use minLength',
  })
  tool('a', { parameters: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' } })
})
