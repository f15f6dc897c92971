import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryStore, RunEngine, type JsonObject } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { openEngine, runToEnd, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { TINY, tiny } from './support.js'

test('a run calls the tools of a server, and the engine closes the server', async (t) => {
  const said: Said[] = [
    {
      calls: [
        { tool: 'tiny__echo', args: { text: 'hello' } },
        { tool: 'tiny__echo', args: { text: 7 } },
        { tool: 'tiny__crash', args: {} },
      ],
    },
    { calls: [{ tool: 'tiny__env', args: {} }] },
    {},
  ]
  let offered: readonly string[] = []
  const provider = testProvider((request, n) => {
    offered = request.tools.map(({ name }) => name)
    return said[n] ?? {}
  })
  const { engine } = await openEngine(t, { providers: [provider], mcpServers: [tiny('good')] })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assertInvariants(events)
  assert.ok(offered.includes('tiny__echo') && offered.includes('bash'))
  const results = events.flatMap((event) => (event.kind === 'tool_result' ? [event.payload] : []))
  assert.deepEqual(results.map(({ exit_code }) => exit_code), [0, 1, -1, 0])
  assert.match(results[1]?.output ?? '', /tiny__echo was not run.*\n- text must be a string/)
  assert.match(results[2]?.output ?? '', /exit code 7/)
  const started = events.flatMap((event) =>
    event.kind === 'tool_started' ? [event.payload.effect] : [],
  )
  assert.deepEqual(started, ['unsafe', 'unsafe', 'unsafe'])
  const mark = (JSON.parse(results[3]?.output ?? '{}') as Record<string, string>)[
    'RUNWRIGHT_COMMAND'
  ]
  assert.ok(mark !== undefined)
  await engine.close()
})

test('the result of a tool lists the files that it changed, whatever its exit code', async (t) => {
  const cwd = scratch(t)
  const write = (name: string, then = ''): object => ({ path: join(cwd, name), then })
  const said: Said[] = [
    {
      calls: [
        { tool: 'tiny__write', args: write('a.txt') as JsonObject },
        { tool: 'bash', args: { command: 'echo b > b.txt' } },
      ],
    },
    {
      calls: [
        { tool: 'reads__write', args: write('quiet.txt') as JsonObject },
        { tool: 'tiny__write', args: write('a2.txt') as JsonObject },
      ],
    },
    {
      calls: [
        { tool: 'tiny__write', args: write('c.txt', 'crash') as JsonObject },
        { tool: 'tiny__echo', args: { text: 'x' } },
      ],
    },
    {},
  ]
  const { engine } = await openEngine(t, {
    cwd,
    providers: [testProvider((_, n) => said[n] ?? {})],
    mcpServers: [tiny('good'), tiny('good', { name: 'reads', effect: 'read' })],
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assertInvariants(events)
  const results = events.flatMap((event) => (event.kind === 'tool_result' ? [event.payload] : []))
  assert.deepEqual(
    results.map(({ tool, changes = [] }) => [
      tool,
      changes.map(({ change, path }) => `${change} ${path}`).join(),
    ]),
    [
      ['tiny__write', 'created a.txt'], ['bash', 'created b.txt'], ['reads__write', ''],
      ['tiny__write', 'created a2.txt'], ['tiny__write', 'created c.txt'], ['tiny__echo', ''],
    ],
  )
  assert.match(results[0]?.changes?.[0]?.diff ?? '', /^\+.*a\.txt$/m)
  await engine.close()
})

test('tools are gated like writes, unless the host declares them as reads', async (t) => {
  for (const effect of ['unsafe', 'read'] as const) {
    const provider = testProvider((_, n) =>
      n === 0 ? { calls: [{ tool: 'tiny__echo', args: { text: 'x' } }] } : {},
    )
    const { engine } = await openEngine(t, {
      providers: [provider],
      mcpServers: [tiny('good', { effect })],
    })
    const { details } = await engine.create({
      goal: 'shell: false',
      max_iterations: 1,
      approval: 'writes',
    })
    const kinds: string[] = []
    for await (const batch of await engine.subscribe(details.run_id)) {
      kinds.push(...batch.map(({ kind }) => kind))
      if (kinds.includes('human_check_required')) break
    }
    assert.equal(kinds.includes('human_check_required'), effect === 'unsafe')
    await engine.close()
  }
})

test('an engine opens without an optional server, but not without a required one', async (t) => {
  const cwd = scratch(t)
  const options = {
    store: new MemoryStore(), roots: [cwd],
    providers: [repairModel()], defaultModel: 'builtin:repair',
  }
  await assert.rejects(
    RunEngine.open({ ...options, mcpServers: [tiny('dies'), tiny('good', { name: 'other' })] }),
    /MCP server tiny: it ended/,
  )
  const warnings: string[] = []
  const engine = await RunEngine.open({
    ...options,
    mcpServers: [
      tiny('dies', { required: false, onWarning: (message) => void warnings.push(message) }),
    ],
  })
  assert.match(warnings.join(), /tiny: it ended with exit code 3/)
  await engine.close()
  const flag = join(cwd, 'up')
  const late = await RunEngine.open({
    ...options,
    store: new MemoryStore(),
    mcpServers: [
      tiny('late', { args: [TINY, 'late', flag], required: false, onWarning: () => undefined }),
    ],
  })
  writeFileSync(flag, '')
  for (let offered = false; !offered;) {
    const { details } = await late.create({ goal: 'shell: true' })
    for await (const _ of await late.subscribe(details.run_id)) continue
    offered = late.tools().some(({ name }) => name === 'tiny__echo')
  }
  await late.close()
  await assert.rejects(
    RunEngine.open({ ...options, mcpServers: [tiny('good'), tiny('good')] }),
    /two MCP servers with the name tiny/,
  )
})
