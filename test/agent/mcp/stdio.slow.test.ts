import assert from 'node:assert/strict'
import { test } from 'node:test'
import { McpError, openMcpServer } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { markedProcesses } from '../../../lib/agent/executors/process-tree.js'
import { readCallResult, readResourceResult } from '../../../lib/agent/mcp/results.js'
import { png } from '../../helpers/images.js'
import { HOUR, ShiftedClock } from '../../helpers/shifted-clock.js'
import { call, open, tiny } from './support.js'

test("tools are listed with the server's name, unsafe by default, and can be called", async (t) => {
  const server = await open(t, tiny('good'))
  const echo = server.tools().find(({ name }) => name === 'tiny__echo')
  assert.equal(echo?.effect, 'unsafe')
  assert.equal(echo?.description, 'Does echo.')
  assert.deepEqual(echo?.parameters, {
    type: 'object', properties: { text: { type: 'string' } }, required: ['text'],
  })
  assert.deepEqual(await call(server, 'echo', { text: 'hé' }), { output: 'hé', exitCode: 0 })
  const read = await open(
    t,
    tiny('good', { effect: ({ name }) => (name === 'echo' ? 'read' : 'unsafe') }),
  )
  const effects = read.tools().map(({ effect }) => effect)
  assert.equal(effects.filter((effect) => effect === 'read').length, 1)
})

for (const [mode, works] of [
  ['old', true],
  ['noise', true],
  ['good', true],
  ['alien', false],
] as const) {
  const outcome = works ? 'accepted' : 'refused, with the known versions'
  test(`a server that is ${mode} is ${outcome}`, async (t) => {
    if (works) {
      assert.equal((await call(await open(t, tiny(mode)), 'echo', { text: 'x' })).output, 'x')
    } else await assert.rejects(openMcpServer(tiny(mode)), /1999-01-01.*2025-11-25/)
  })
}

test('results become text: images, resources and links are described', async (t) => {
  const server = await open(t, tiny('good'))
  const { output } = await call(server, 'pictures')
  assert.deepEqual(output.split('\n'), [
    'see',
    '[image image/png, 4 bytes]',
    '[resource file:///a text/plain]',
    'inside',
    '[resource file:///b , 3 bytes]',
    '[link to file:///c c]',
    '[a part of kind hologram]',
  ])
})

test('failures of tool, server and output schema become the output of the call', async (t) => {
  const server = await open(t, tiny('good'))
  assert.deepEqual(await call(server, 'fail'), { output: 'it did not work', exitCode: 1 })
  assert.deepEqual(await call(server, 'refuse'), {
    output: 'MCP server tiny: wrong arguments (-32602)', exitCode: 1,
  })
  assert.deepEqual(await call(server, 'lie', { n: 3 }), { output: '{"n":3}', exitCode: 0 })
  const lie = await call(server, 'lie')
  assert.equal(lie.exitCode, 1)
  assert.match(lie.output, /broke its own output schema: \/n must be an integer/)
})

test('an aborted call rejects with the reason and is cancelled at the server', async (t) => {
  const server = await open(t, tiny('good'))
  const stop = new AbortController()
  const hanging = call(server, 'hang', {}, stop.signal)
  setImmediate(() => stop.abort(new Error('enough')))
  await assert.rejects(hanging, /enough/)
  assert.equal((JSON.parse((await call(server, 'cancelled')).output) as unknown[]).length, 1)
})

test('a call that takes too long fails; progress extends its deadline', async (t) => {
  const clock = new ManualClock()
  const server = await open(t, tiny('good', { clock, callTimeoutMs: 1_000 }))
  assert.equal((await call(server, 'slow')).output, 'done')
  const hanging = call(server, 'hang')
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(1_000)
  const { output, exitCode } = await hanging
  assert.equal(exitCode, 124)
  assert.match(output, /not answered in time/)
})

test('of a server’s requests, ping is answered and any other is refused', async (t) => {
  const server = await open(t, tiny('good'))
  const answers = JSON.parse((await call(server, 'ask')).output) as {
    id: string
    error?: { code: number }
  }[]
  assert.deepEqual(
    answers.map(({ id, error }) => [id, error?.code ?? 'ok']),
    [
      ['q1', -32601],
      ['q2', 'ok'],
    ],
  )
})

test('a crash is reported with the end of stderr; the next call restarts the server', async (t) => {
  const clock = new ShiftedClock()
  const server = await open(t, tiny('good', { env: { TINY_KEY: 'sesame-open-up' }, clock }))
  const crashed = await call(server, 'crash')
  assert.equal(crashed.exitCode, -1)
  assert.match(crashed.output, /exit code 7; it last said: x+ about to crash with \[secret removed\]/)
  assert.ok(crashed.output.length < 3_000)
  assert.equal((await call(server, 'echo', { text: 'again' })).output, 'again')
  // After the second crash in a row, restarts are delayed.
  await call(server, 'crash')
  await call(server, 'crash')
  clock.shiftMs = 5 * HOUR
  const refused = await call(server, 'echo', { text: 'x' })
  assert.equal(refused.exitCode, 1)
  assert.match(refused.output, /started again in 1 s at the earliest/)
  clock.shiftMs = -5 * HOUR
  clock.advance(1_000)
  assert.equal((await call(server, 'echo', { text: 'back' })).output, 'back')
})

test("a server gets its own variables, and none of the host's secrets", async (t) => {
  process.env['RUNWRIGHT_TEST_SECRET'] = 'hidden'
  t.after(() => delete process.env['RUNWRIGHT_TEST_SECRET'])
  const server = await open(t, tiny('good', { env: { GIVEN: 'yes' } }))
  const env = JSON.parse((await call(server, 'env')).output) as Record<string, string>
  assert.equal(env['GIVEN'], 'yes')
  assert.equal(env['RUNWRIGHT_TEST_SECRET'], undefined)
  assert.ok(env['PATH'] !== undefined)
})

test('a message that is too large disconnects the server', async (t) => {
  const server = await open(t, tiny('good', { maxMessageBytes: 1_000_000 }))
  const { output, exitCode } = await call(server, 'huge')
  assert.equal(exitCode, -1)
  assert.match(output, /a message of more than 1000000 bytes/)
})

test('lists are read page by page, up to a limit', async (t) => {
  const warnings: string[] = []
  const onWarning = (message: string): void => void warnings.push(message)
  const pages = await open(t, tiny('pages'))
  assert.deepEqual(pages.tools().map(({ name }) => name), [0, 1, 2, 3, 4].map((n) => `tiny__t${n}`))
  const endless = await open(t, tiny('endless', { maxTools: 5, onWarning }))
  assert.equal(endless.tools().length, 5)
  assert.match(warnings.join(), /more than 5 tools/)
})

test('tools that can only be called as tasks are left out, with a warning', async (t) => {
  const warnings: string[] = []
  const onWarning = (message: string): void => void warnings.push(message)
  const server = await open(t, tiny('tasks', { onWarning }))
  assert.deepEqual(server.tools().map(({ name }) => name), ['tiny__plain', 'tiny__maybe'])
  assert.deepEqual(warnings, [
    'MCP server tiny: tools that can only be called as tasks are left out: "later", "much later"',
  ])
  const chosen = await open(t, tiny('tasks', { tools: ['plain'], onWarning }))
  assert.deepEqual([chosen.tools().length, warnings.length], [1, 1])
})

test('names are made safe and unique, descriptions are cut, unusable tools left out', async (t) => {
  const warnings: string[] = []
  const server = await open(
    t,
    tiny('names', { onWarning: (message) => void warnings.push(message) }),
  )
  const names = server.tools().map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const name of names) assert.match(name, /^tiny__[a-zA-Z0-9_-]{1,58}$/)
  assert.deepEqual(names.filter((name) => /^tiny__a_b/.test(name)).length, 2)
  assert.equal(names.filter((name) => name === 'tiny__ok').length, 1)
  const long = server.tools().find(({ name }) => name === 'tiny__long')
  assert.ok(
    long !== undefined && long.description.length <= 2_001 && !long.description.includes('\u001b'),
  )
  // Neither schema can be checked as a whole.
  assert.ok(!names.includes('tiny__deep') && !names.includes('tiny__none'))
  assert.deepEqual(warnings.map((text) => /"(deep|none)"/.exec(text)?.[1]).sort(), ['deep', 'none'])
})

test('a host may select tools, and gets a warning for each that is missing', async (t) => {
  const warnings: string[] = []
  const onWarning = (message: string): void => void warnings.push(message)
  const server = await open(t, tiny('good', { tools: ['echo', 'fly'], onWarning }))
  assert.deepEqual(server.tools().map(({ name }) => name), ['tiny__echo'])
  assert.match(warnings.join(), /no tool "fly"/)
})

test('a changed list is read again', async (t) => {
  const clock = new ManualClock()
  const server = await open(t, tiny('good', { clock }))
  await call(server, 'grow')
  clock.advance(1_000)
  for (;;) {
    if (server.tools().some(({ name }) => name === 'tiny__grown')) break
    await call(server, 'echo', { text: 'answers come in order' })
  }
})

for (const [title, options, says] of [
  ['does not exist', { name: 'x', command: '/nowhere/server' }, /could not be started.*ENOENT/],
  ['ends at once', tiny('dies'), /ended with exit code 3/],
] as const) {
  test(`a server that ${title} is named in the error`, async () => {
    await assert.rejects(openMcpServer(options), (error) => {
      assert.ok(error instanceof McpError)
      assert.equal(error.code, 'ERR_AGENT_MCP')
      assert.match(error.message, says)
      return true
    })
  })
}

test('a server that never answers the handshake fails to open', async () => {
  const clock = new ManualClock()
  const opening = openMcpServer(tiny('mute', { clock, startTimeoutMs: 5_000 }))
  const refused = assert.rejects(opening, /initialize was not answered in time/)
  await clock.whenPending()
  clock.advance(5_000)
  await refused
})

test('closing kills a server that ignores it, and its processes', async () => {
  const server = await openMcpServer(tiny('stubborn'))
  const { output } = await call(server, 'env')
  const mark = (JSON.parse(output) as Record<string, string>)['RUNWRIGHT_COMMAND'] ?? ''
  const left = markedProcesses('RUNWRIGHT_COMMAND', mark)
  assert.equal((await left.members()).length, 2)
  await server.close()
  assert.deepEqual(await left.members(), [])
  await server.close()
  assert.equal((await call(server, 'echo', { text: 'x' })).exitCode, 1)
})

for (const [options, says] of [
  [{ name: 'a b', command: 'x' }, /name must be/],
  [{ name: 'a', command: '' }, /command must name/],
  [{ name: 'a', url: 'ftp://x' }, /url must be/],
  [{ name: 'a', url: 'http://u:p@x' }, /without a password/],
  [{ name: 'a', url: 'http://x', bearer: 'a b' }, /bearer/],
  [{ name: 'a', command: 'x', url: 'http://x' }, /not both/],
  [{ name: 'a', command: 'x', maxTools: 0 }, /maxTools/],
  [{ name: 'a', command: 'x', effect: 'idempotent' as 'read' }, /effect/],
] as const) {
  test(`an invalid option throws: ${says.source}`, async () => {
    await assert.rejects(
      openMcpServer(options),
      (error) => error instanceof TypeError && says.test(error.message),
    )
  })
}

test('the last answer of a server that ends at once counts', async (t) => {
  // With many at a time, the end of one is often noticed before its answer.
  const script = `while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\\([0-9]*\\).*/\\1/p')
    answer() { echo '{"jsonrpc":"2.0","id":'$id',"result":'"$1"'}'; }
    case "$line" in
      *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}' | tr -d '\\n'; echo;;
      *tools/list*) answer '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}';;
      *tools/call*) answer '{"content":[{"type":"text","text":"last words"}]}'; exit 0;;
    esac
  done`
  const options = { name: 'tiny', command: '/bin/sh', args: ['-c', script] }
  const servers = await Promise.all(Array.from({ length: 24 }, () => open(t, options)))
  const answers = await Promise.all(servers.map((server) => call(server, 'echo')))
  assert.deepEqual(answers.map(({ output }) => output), Array(24).fill('last words'))
})

test('structured content of any depth is no reason to fail a call', () => {
  const structuredContent = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  const output = '[structured content, nested too deeply to be shown]'
  assert.deepEqual(readCallResult({ structuredContent }, null), { output, exitCode: 0 })
})

test('images of results and resources are files, without a text of their own', () => {
  const image = png()
  const data = image.toString('base64')
  const link = { uri: 'file:///plot.png', mimeType: 'image/png', blob: data }
  const content = [
    { type: 'text', text: 'see' },
    { type: 'image', mimeType: 'image/jpeg', data },
    { type: 'image', mimeType: 'image/png', data: `${data}!` },
    { type: 'resource', resource: link },
    { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' },
  ]
  const files = [
    { mediaType: 'image/jpeg', data },
    { mediaType: 'image/png', data, name: 'file:///plot.png' },
  ]
  const output = 'see\n[image image/png, 66 bytes]\n[audio audio/wav, 3 bytes]'
  assert.deepEqual(readCallResult({ content }, null), { output, exitCode: 0, files })
  const failed = readCallResult({ content: [content[1]!], isError: true }, null)
  assert.deepEqual(failed, { output: '', exitCode: 1, files: [files[0]] })
  assert.deepEqual(readResourceResult({ contents: [link] }), {
    output: '', exitCode: 0, files: [files[1]],
  })
})
