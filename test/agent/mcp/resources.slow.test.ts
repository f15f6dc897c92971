import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RunEngine, MemoryStore } from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'
import { open, TINY, tiny } from './support.js'

test('a server lists its resources and templates, page by page', async (t) => {
  const server = await open(t, tiny('resources'))
  assert.deepEqual(await server.resources(), [
    {
      uri: 'memo:///a', isTemplate: false, name: 'First memo', description: 'About  a.', mimeType: '',
    },
    {
      uri: 'memo:///logo', isTemplate: false, name: 'logo', description: '', mimeType: 'image/png',
    },
    { uri: 'memo:///{name}', isTemplate: true, name: 'any', description: '', mimeType: '' },
  ])
  assert.deepEqual(server.tools(), [], 'it does not say that it has tools')
  const without = await open(t, tiny('resources', { args: [TINY, 'resources', 'no templates'] }))
  assert.equal((await without.resources()).length, 2)
  assert.deepEqual(await (await open(t, tiny('good'))).resources(), [])
})

for (const [uri, output, exitCode] of [
  ['memo:///a', '[resource memo:///a text/plain]\nwhat a says', 0],
  ['memo:///logo', '[resource memo:///logo image/png, 7 bytes]', 0],
  ['memo:///json', '[resource memo:///json application/json]\n{"n":1}', 0],
  ['memo:///none', 'MCP server tiny: Resource not found (-32002)', 1],
] as const) {
  test(`reading ${uri} has an output and an exit code`, async (t) => {
    const server = await open(t, tiny('resources'))
    assert.deepEqual(await server.readResource(uri), { output, exitCode })
  })
}

test('a model lists and reads the resources of the servers that have some', async (t) => {
  const calls = [{ server: 'tiny' }, { server: 'tiny', uri: 'memo:///a' }, { server: 'other' }]
  const provider = testProvider((_, n) =>
    n === 0 ? { calls: calls.map((args) => ({ tool: 'read_resource', args })) } : {},
  )
  const { engine } = await openEngine(t, {
    providers: [provider],
    mcpServers: [tiny('resources'), tiny('good', { name: 'other' })],
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const results = events.flatMap((event) => (event.kind === 'tool_result' ? [event.payload] : []))
  assert.deepEqual(results.map(({ exit_code }) => exit_code), [0, 0, 1])
  assert.deepEqual(results[0]?.output.split('\n'), [
    'memo:///a (First memo; About  a.)',
    'memo:///logo (logo; image/png)',
    'template memo:///{name} (any)',
  ])
  assert.match(results[1]?.output ?? '', /what a says/)
  assert.match(results[2]?.output ?? '', /server must be/)
  const effects = events.flatMap((event) =>
    event.kind === 'tool_started' ? [event.payload.effect] : [],
  )
  assert.deepEqual([...new Set(effects)], ['read'])
  await engine.close()
})

test('the tool for resources is offered only where it can be used', async (t) => {
  for (const [server, offered] of [
    [tiny('good'), false],
    [tiny('resources', { resources: false }), false],
    [tiny('resources'), true],
  ] as const) {
    const { engine } = await openEngine(t, { mcpServers: [server] })
    assert.equal(engine.tools().some(({ name }) => name === 'read_resource'), offered)
    await engine.close()
  }
  const own = {
    name: 'read_resource', description: '', parameters: { type: 'object' }, effect: 'read',
    execute: () => Promise.resolve({ output: '', exitCode: 0 }),
  } as const
  await assert.rejects(
    RunEngine.open({
      store: new MemoryStore(), roots: [scratch(t)], tools: [own], mcpServers: [tiny('good')],
    }),
    /read_resource is named like/,
  )
})

test('an engine lists the prompts of its servers, without those that fail', async (t) => {
  const warnings: string[] = []
  const { engine } = await openEngine(t, {
    mcpServers: [
      tiny('resources'),
      tiny('good', { name: 'other' }),
      tiny('dies', {
        name: 'dead', required: false, onWarning: (message) => void warnings.push(message),
      }),
    ],
  })
  assert.deepEqual(await engine.mcpPrompts(), [
    {
      server: 'tiny',
      name: 'review',
      description: 'Reviews code.',
      arguments: [{ name: 'code', description: '', required: true }],
    },
  ])
  assert.match(warnings.at(-1) ?? '', /the list of prompts could not be read: MCP server dead/)
  await engine.close()
  const { engine: plain } = await openEngine(t, {})
  assert.deepEqual(await plain.mcpPrompts(), [])
  await plain.close()
})
