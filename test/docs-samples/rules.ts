/** The code around the samples of the documents, which runs each and checks its results. */

import { programAt } from '../helpers/programs.js'

/** How to run one sample. */
export interface Rule {
  readonly document: string
  /** Text that no other sample of the document contains. */
  readonly has: string
  /** Code before the sample: TypeScript, or lines for the shell. */
  readonly before?: string
  /** Code after the sample, which can use its variables. */
  readonly after?: string
  /** Files to create in its working directory. */
  readonly files?: Readonly<Record<string, string>>
  /** Whether the project in `/srv/projects/shop` has its bugs. */
  readonly bugs?: boolean
  /** Replacements in the sample, besides hosts, ports and folders. */
  readonly replace?: Readonly<Record<string, string>>
  /** Whether it needs other packages, and so runs with the tests of peers. */
  readonly peers?: boolean
}

const API_KEY = 'alice-key-0123456789'
const SCRAPE_KEY = 'scrape-key-0123456789'

/** The environment variables of all samples. */
export const keys = (standIn: string): Record<string, string> => ({
  ALICE_KEY: API_KEY,
  BOB_KEY: 'bob-key-0123456789',
  SCRAPE_KEY,
  RUNWRIGHT_KEY: API_KEY,
  HOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  GROQ_API_KEY: 'stand-in-key-0123456789',
  ANTHROPIC_API_KEY: 'stand-in-key-0123456789',
  ANTHROPIC_BASE_URL: standIn,
})

/** A minimal Model Context Protocol server over standard input and output. */
const DOCS_SERVER = `import { createInterface } from 'node:readline'
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  if (id === undefined) continue
  const hello = { protocolVersion: '2025-06-18', capabilities: {} }
  const tools = [{ name: 'search', inputSchema: { type: 'object' } }]
  const result = method === 'initialize' ? hello : { tools }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
}
`

/** The first argument of `doRun`: an engine with a scripted model. */
const withScript = (script: string, more = ''): string => `
  const { MemoryStore: Store } = await import('runwright/agent')
  const { ScriptedModel: Script } = await import('runwright/agent/testing')
  const script = ${script}
  const scripted = { id: 'script', description: 'script', isLanguageModel: false, suggestions: [] }
  const ended = await doRun(
    {
      store: new Store(), roots: [folder], defaultModel: 'script:it',
      providers: [{ ...scripted, create: () => script }],
      ${more}
    },`

/** `npx runwright` for the shell, in a project with a test; a server ends when it listens. */
const NPX = `
  program=(${[process.execPath, ...programAt('lib/cli/main.ts')].map((it) => `'${it}'`).join(' ')})
  npx() {
    shift
    if [ $# -gt 0 ]; then "\${program[@]}" "$@"; return; fi
    exec 3< <(exec "\${program[@]}" --port 0)
    read -r line <&3
    kill $!
    [[ $line == 'runwright listening on '* ]]
  }
  mkdir tool && cd tool
  echo '{ "scripts": { "test": "node --test" } }' > package.json
  echo "require('node:test').test('it works', () => {})" > it.test.js
  export XDG_STATE_HOME="$PWD/../state"`

export const rules: readonly Rule[] = [
  // The command line
  {
    document: 'docs/command-line.md',
    has: 'npx runwright run --help',
    before: NPX,
  },
  {
    document: 'docs/command-line.md',
    has: '--model openai:gpt-5-mini',
    before: 'export OPENAI_API_KEY=key-0123456789',
  },
  {
    document: 'docs/command-line.md',
    has: '| tail -n 1',
    before: '{',
    after: `} > last; grep -q '"status":"achieved"' last`,
  },
  // The README
  {
    document: 'README.md',
    has: 'service.attach(server)',
    bugs: true,
    replace: {
      "roots: ['./project']":
        "roots: ['/srv/projects/shop'], providers: [twoSteps], defaultModel: 'two:steps'",
    },
    after: `const tests = printed.filter((line) => line.includes('tests'))
      assert.deepEqual([tests[0], tests.at(-1)], ['3 of 4 tests fail', 'all 4 tests pass'])
      assert.ok(printed.includes('write_file range.js'), printed.join('|'))
      const { get } = await import('runwright/http')
      const origin = await originOf(server)
      assert.equal((await get(origin + '/')).text, 'the rest of your app')
      await tryService(origin + '/agents'); await shut(service, server)`,
  },
  {
    document: 'README.md',
    has: 'using blocking',
    after: `assert.deepEqual(printed, ["[ 'nut' ]", 'one', 'two', '201 /v1/items/2'])`,
  },
  {
    document: 'README.md',
    has: 'max_iterations',
    bugs: true,
    after: `run=$(curl -sS $origin/api/runs/$id)
      test "$(echo "$run" | node -p 'JSON.parse(fs.readFileSync(0)).status')" = achieved`,
  },
  // The life of a run
  {
    document: 'docs/runs.md',
    has: '"hitl_enabled": true',
    bugs: true,
    before: 'cp -r srv faulty',
    after: 'until_status awaiting_human $id; (until_status achieved $id && echo ended > ended) &',
  },
  {
    document: 'docs/runs.md',
    has: '?kinds=goal_check,tool_call',
    before: 'until_status awaiting_human $id; {',
    after: '} > followed &',
  },
  {
    document: 'docs/runs.md',
    has: "'http://127.0.0.1:8000/api/runs?status=awaiting_human'",
    before: '{',
    after: `} > listed; test "$(grep -o $id listed | wc -l)" -ge 2
      grep -q '"kind":"iteration"' listed`,
  },
  {
    document: 'docs/runs.md',
    has: '"feedback": "the tests are right',
    after: `until_status achieved $id; wait; test -s ended; grep -q '"kind":"run_end"' followed
      rm -rf srv/projects/shop; cp -r faulty/projects/shop srv/projects/`,
  },
  {
    document: 'docs/runs.md',
    has: '"approval": "writes"}',
    after: 'until_status awaiting_human $id',
  },
  {
    document: 'docs/runs.md',
    has: '"decision": "reject"',
    after: 'until_status awaiting_human $id',
  },
  {
    document: 'docs/runs.md',
    has: 'const edits',
    before: `const { MemoryStore } = await import('runwright/agent')
      const { createRunService } = await import('runwright/server')
      const { ScriptedModel } = await import('runwright/agent/testing')
      const fix = "sed -i 's/n > range.to/n < range.to/; s/to + range/to - range/' range.js"
      const script = new ScriptedModel([
        {
          calls: [
            { tool: 'bash', args: { command: 'echo hi > made' } },
            { tool: 'write_file', args: { path: 'package.json', content: '{}' } },
          ],
        },
        (request) => {
          const results = request.messages.filter((message) => message.role === 'tool')
          assert.deepEqual(results.map(({ exit_code }) => exit_code), [0, 126])
          return { text: 'as you like' }
        },
        { calls: [{ tool: 'bash', args: { command: fix } }] },
        { text: 'Done.' },
      ])
      const service = await createRunService({
        engine: {
          store: new MemoryStore(),
          roots: [folder + '/srv/projects/shop'],
          providers: [{
            id: 'script', description: 'a script', isLanguageModel: false, suggestions: [],
            create: () => script,
          }],
          defaultModel: 'script:it',
        },
      })
      const server = (await import('node:http')).createServer(service.handler).listen(0)
      const address = await originOf(server)`,
    replace: { "'http://127.0.0.1:8000'": 'address' },
    bugs: true,
    after: `assert.equal(printed.at(-1), 'achieved'); assert.match(printed[0] ?? '', /^wants bash/)
      await shut(service, server)`,
  },
  { document: 'docs/runs.md', has: '/abort', after: 'until_status aborted $id' },
  {
    document: 'docs/runs.md',
    has: '/retry',
    before: '{',
    after: '} > answer; grep -q "\\"parent_run_id\\":\\"$id\\"" answer',
  },
  // Workspaces
  {
    document: 'docs/workspaces.md',
    has: '"max_iterations": 3}',
    bugs: true,
    before: 'cp -r srv faulty',
    after: 'until_status achieved $id',
  },
  {
    document: 'docs/workspaces.md',
    has: "'accept: text/x-diff'",
    before: '{',
    after: `} > range.patch; grep -q '^+++ b/range.js' range.patch
      patch -sp1 -d faulty/projects/shop < range.patch; diff -r faulty srv`,
  },
  {
    document: 'docs/workspaces.md',
    has: 'files/range.js?at=start',
    before: '{',
    after: `} > start.txt; ! diff start.txt srv/projects/shop/range.js > differs
      grep -q '"reason":"start"' start.txt; grep -q '"type":"file"' start.txt`,
  },
  {
    document: 'docs/workspaces.md',
    has: '/restore',
    before: 'cp srv/projects/shop/range.js fixed.js; {',
    after: `} > restored.json; grep -q '"restored"' restored.json
      ! diff fixed.js srv/projects/shop/range.js > differs`,
  },
  ...['const fork =', "workspace: 'isolated'", 'runs.message('].map((has) => ({
    document: 'docs/workspaces.md',
    has,
    bugs: true,
    before: `const { FileStore } = await import('runwright/agent')
      const { createRunService } = await import('runwright/server')
      const service = await createRunService({
        engine: {
          store: new FileStore({ directory: folder + '/data' }),
          roots: [folder + '/srv/projects/shop'],
          defaultModel: 'two:steps',
          providers: [twoSteps],
        },
      })
      const server = (await import('node:http')).createServer(service.handler).listen(0)
      const origin = await originOf(server)`,
    replace: { "'http://127.0.0.1:8000'": 'origin' },
    after: `${
      {
        'const fork =': `assert.match(printed.at(-1)!, /achieved$/)
          assert.equal(fork.forked_from?.run_id, source.run_id)`,
        "workspace: 'isolated'": `assert.match(printed[0]!, /^modified range.js/)
          assert.match(printed.at(-1)!, /'range.js'/)
          assert.equal((await runs.get(run_id)).changes, 'applied')`,
        'runs.message(': `assert.equal((await runs.get(run_id)).status, 'achieved')`,
      }[has]
    }; await runs.close(); await shut(service, server)`,
  })),
  {
    document: 'docs/workspaces.md',
    has: 'readFiles:',
    after: `await tryService(await (async () => {
      const server = (await import('node:http')).createServer(service.handler).listen(0)
      return originOf(server)
    })(), process.env.ALICE_KEY!); await service.close({ graceMs: 0 }); process.exit(0)`,
  },
  // Trees of runs
  {
    document: 'docs/attempts.md',
    has: "'openai:gpt-5'",
    bugs: true,
    before: `const { FileStore } = await import('runwright/agent')
      const { createRunService } = await import('runwright/server')
      const service = await createRunService({
        engine: {
          store: new FileStore({ directory: folder + '/data' }),
          roots: [folder + '/srv/projects/shop'],
          defaultModel: 'two:steps',
          providers: [twoSteps],
        },
      })
      const server = (await import('node:http')).createServer(service.handler).listen(0)
      const origin = await originOf(server)`,
    replace: {
      "'http://127.0.0.1:8000'": 'origin',
      'anthropic:claude-sonnet-5': 'two:steps',
      'openai:gpt-5': 'two:steps',
    },
    after: `assert.match(printed[0]!, /^attempt [12] wins: it was the first to achieve the goal$/)
      assert.ok(printed.includes('two:steps achieved all 4 tests pass'), printed.join('|'))
      assert.equal(printed.at(-1), 'the changes are applied')
      await runs.close(); await shut(service, server)`,
  },
  {
    document: 'docs/attempts.md',
    has: '"choose": "human"',
    bugs: true,
    before: 'cp -r srv faulty',
    after: 'until_status awaiting_human $id',
  },
  {
    document: 'docs/attempts.md',
    has: '.gate.candidates[1].run_id',
    before: '{',
    after: `} > candidates; grep -q "status: 'achieved'" candidates
      grep -q '^+++ b/range.js' candidates; diff -r faulty srv`,
  },
  {
    document: 'docs/attempts.md',
    has: '"attempt": 2',
    after: `until_status achieved $id; ! diff -r faulty srv > differs
      rm -rf srv/projects/shop; cp -r faulty/projects/shop srv/projects/`,
  },
  {
    document: 'docs/attempts.md',
    has: 'test -e RELEASED',
    after: `until_status failed $id; diff -r faulty srv
      curl -sS $origin/api/runs/$id | grep -q '"end_reason":"attempts_failed"'`,
  },
  {
    document: 'docs/attempts.md',
    has: '$loser/apply',
    after: `! diff -r faulty srv > differs; grep -q '^[<>].* range.to' differs`,
  },
  {
    document: 'docs/attempts.md',
    has: 'details.delegation',
    after: `assert.deepEqual(details.delegation, { depth: 1, children: 3 })`,
  },
  {
    document: 'docs/attempts.md',
    has: 'translate_docs',
    after: `${withScript(
      `new Script([
        ({ run }) => {
          const path = /as (manual[.]\\w+[.]txt)/.exec(run.goal)?.[1]
          if (path === undefined) {
            const args = { languages: ['French', 'Greek'] }
            return { calls: [{ tool: 'translate_docs', args }] }
          }
          return { calls: [{ tool: 'write_file', args: { path, content: 'text' } }] }
        },
        { text: 'There.' },
      ], { name: 'script:it' })`,
      "tools: [translate], delegation: {}, workspaceFolder: folder + '/../copies',",
    )} { goal: 'shell: test -s manual.French.txt && test -s manual.Greek.txt', delegation: {} })
      assert.equal(ended.status, 'achieved')
      assert.equal(ended.delegates, 2)`,
  },
  // Goals
  {
    document: 'docs/goals.md',
    has: '"cwd": "/srv/project"',
    replace: { '/srv/project': '/srv/projects/shop' },
    after: `const { MemoryStore, RunEngine } = await import('runwright/agent')
      const details = await doRun({ store: new MemoryStore(), roots: [folder] }, sample)
      assert.equal(details.status, 'achieved')`,
  },
  {
    document: 'docs/goals.md',
    has: 'const smoke',
    after: `const { MemoryStore } = await import('runwright/agent')
      const { createServer } = await import('node:http')
      const server = createServer((_, response) => response.end('hi')).listen(0)
      const port = (await originOf(server)).split(':').at(-1)
      const options = { store: new MemoryStore(), roots: [folder], goals: [smoke] }
      const details = await doRun(options, { goal: 'smoke: ' + port })
      assert.equal(details.status, 'achieved')
      server.close()`,
  },
  {
    document: 'docs/judged-goals.md',
    has: 'judgeModel',
    after: `assert.equal(details.model_name, 'builtin:repair')`,
  },
  // The HTTP client
  {
    document: 'docs/http-client.md',
    has: 'using blocking',
    after: `assert.equal(response.json<Item[]>()[0]?.name, 'nut')
      assert.equal(blocking.post('/items', { json: { name: 'nut' } }).statusCode, 201)`,
  },
  {
    document: 'docs/http-client.md',
    has: 'docker.sock',
    before: `(await import('node:fs')).mkdirSync('var/run', { recursive: true })
      const { createServer } = await import('node:http')
      const daemon = createServer((_, response) => response.end('27')).listen('var/run/docker.sock')
      await new Promise((resolve) => daemon.once('listening', () => resolve(null)))`,
    after: `assert.equal((await client.get('http://docker/version')).text, '27'); daemon.close()`,
  },
  {
    document: 'docs/http-client.md',
    has: 'report.pdf',
    files: { 'report.pdf': 'a report of some length' },
    after: `assert.match(printed.at(-1) ?? '', /^\\d+ \\d+$/)`,
  },
  {
    document: 'docs/http-client.md',
    has: 'large.iso',
    after: `assert.equal((await import('node:fs')).statSync('large.iso').size, 1_000_000)`,
  },
  {
    document: 'docs/http-client.md',
    has: "endsWith('.internal')",
    after: `assert.equal((await client.get(standIn + '/leaves')).statusCode, 302)`,
  },
  {
    document: 'docs/http-client.md',
    has: 'parsePublicSuffixes',
    files: { 'public_suffix_list.dat': 'test\nco.test\n', 'cookies.json': JSON.stringify([]) },
    after: `cookies.set('seen', 'once', { domain: 'shop.test' })
      assert.match(JSON.stringify(client.cookies), /once/)`,
  },
  {
    document: 'docs/http-client.md',
    has: 'socks5h:',
    before: `const { cpSync, mkdirSync } = await import('node:fs')
      mkdirSync('etc/ssl', { recursive: true })
      cpSync(new URL('../fixtures/ws/localhost.crt', INSIDE), 'etc/ssl/private-ca.pem')
      cpSync(new URL('../fixtures/ws/localhost.crt', INSIDE), 'client.pem')
      cpSync(new URL('../fixtures/ws/localhost.key', INSIDE), 'client-key.pem')`,
    after: `assert.throws(() => client.get('https://a.test/'), { code: 'ERR_HTTP_PROXY' })`,
  },
  {
    document: 'docs/http-client.md',
    has: 'client.sse(',
    after: `assert.deepEqual(printed, ['1 it rains', '2', '1'])`,
  },
  {
    document: 'docs/http-client.md',
    has: 'new MockTransport',
    after: `assert.deepEqual((await client.get('/x')).json(), { path: '/x' })`,
  },
  {
    document: 'docs/http-client.md',
    has: 'new RecordingTransport',
    after: `const { readFileSync } = await import('node:fs')
      assert.ok(!readFileSync('test/recordings/items.har', 'utf8').includes('a-real-token'))
      const again = new RecordingTransport({ file: 'test/recordings/items.har', mode: 'replay' })
      await using replaying = new AsyncClient({ transport: again, baseUrl: standIn + '/v1' })
      const items = (await replaying.get('items')).json<{ name: string }[]>()
      assert.deepEqual(items, [{ name: 'nut' }])`,
  },
  {
    document: 'docs/http-client.md',
    has: 'client.extend(',
    after: `await assert.rejects(async () => await admin.get('/none'), { code: 'ERR_HTTP_STATUS' })`,
  },
  {
    document: 'docs/http-client.md',
    has: 'new OpenAI(',
    peers: true,
    before: `process.env['OPENAI_BASE_URL'] = standIn + '/openai/v1'; process.env['OPENAI_API_KEY'] = 'key'`,
    after: `assert.deepEqual(printed, ['hello']); await client.close()`,
  },
  {
    document: 'docs/http-client.md',
    has: 'client.post(\'/reports\', { json',
    after: `assert.deepEqual([items, JSON.parse(report)], [['a', 'b'], { bytes: 19 }])`,
  },
  {
    document: 'docs/http-client.md',
    has: 'iterBytes(), outgoing',
    after: `assert.equal((await client.post(standIn + '/reports', { content: ['one'] })).text, '{"bytes":3}')`,
  },
  {
    document: 'docs/http-client.md',
    has: 'class Refreshing',
    after: `const { AsyncClient: C, MockTransport: M, Response: R } = await import('runwright/http')
      const isFresh = (value: string | null): boolean => value === 'Bearer fresh'
      const transport = new M(({ headers }) => {
        return new R(isFresh(headers.get('authorization')) ? 200 : 401)
      })
      const auth = new Refreshing(() => 'fresh')
      await using client = new C({ transport, baseUrl: 'http://a.test', auth })
      assert.deepEqual([(await client.get('/')).statusCode, transport.requests.length], [200, 2])
      assert.deepEqual([(await client.get('/')).statusCode, transport.requests.length], [200, 3])`,
  },
  // MCP
  { document: 'docs/mcp.md', has: 'issues', files: { 'docs-server.js': DOCS_SERVER } },
  { document: 'docs/mcp.md', has: 'mcpPrompts', files: { 'docs-server.js': DOCS_SERVER } },
  {
    document: 'docs/mcp.md',
    has: 'openMcpServer',
    files: { 'docs-server.js': DOCS_SERVER },
    after: `assert.deepEqual(docs.tools().map(({ name }) => name), ['docs__search'])
      await engine.close()`,
  },
  // Models
  {
    document: 'docs/models.md',
    has: 'const groq',
    after: `const model = groq.create('openai/gpt-oss-120b')
      const run = { run_id: 'r', iteration: 1, turn: 0, goal: 'g', check: null, cwd: folder }
      const messages = [{ role: 'user', text: 'hello?' }] as const
      const signal = AbortSignal.timeout(60_000)
      const turn = await model.complete({ system: 's', messages, tools: [], signal, run })
      assert.equal(turn.message.text, 'hello')`,
  },
  {
    document: 'docs/models.md',
    has: 'const greeter',
    after: `const details = await doRun(engine, { goal: 'shell: grep -q hello hello.txt' })
      assert.equal(details.status, 'achieved')`,
  },
  {
    document: 'docs/models.md',
    has: '"last_tool_result_contains"',
    files: { 'sum.js': 'export const sum = (a, b) => a - b\n' },
    after: `const { MemoryStore } = await import('runwright/agent')
      const { mkdirSync, writeFileSync } = await import('node:fs')
      mkdirSync('scripts'); writeFileSync('scripts/fix.json', JSON.stringify(sample))
      const options = { store: new MemoryStore(), roots: [folder], scripts: folder + '/scripts' }
      const request = { goal: "shell: grep -q 'a + b' sum.js", model_name: 'scripted:fix.json' }
      const details = await doRun(options, request)
      assert.equal(details.status, 'achieved')
      assert.equal(details.usage.input_tokens, 1200)`,
  },
  {
    document: 'docs/models.md',
    has: '"media_type": "image/png"',
    replace: { 'AAAANSUhEUgAA…': 'AAAAA' },
    after: `const { MemoryStore, NO_USAGE } = await import('runwright/agent')
      let seen = 0
      const message = { role: 'assistant', text: '', calls: [] }
      const model = {
        name: 'seeing:m', isLanguageModel: false, contextWindow: null, prices: null,
        takesImages: true,
        complete: async ({ messages }) => {
          seen = messages[0].images.length
          return { message, reasoning: '', usage: NO_USAGE, stop: 'end' }
        },
      }
      const about = { description: '', isLanguageModel: false, suggestions: [] }
      const providers = [{ id: 'seeing', ...about, create: () => model }]
      const options = { store: new MemoryStore(), roots: [folder], providers }
      const request = { ...sample, model_name: 'seeing:m', goal: 'shell: false', max_iterations: 1 }
      await doRun(options, request)
      assert.equal(seen, 1)`,
  },
  {
    document: 'docs/models.md',
    has: 'messages so far',
    after: `${withScript('model')} { goal: 'shell: false', max_iterations: 1 })
      assert.equal(ended.end_reason, 'max_iterations'); model.assertUsedUp()`,
  },
  // Mounting
  {
    document: 'docs/mounting.md',
    has: "basePath: '/agents'",
    after: `const { createServer } = await import('node:http')
      const server = createServer(service.handler).listen(0)
      await tryService((await originOf(server)) + '/agents'); await shut(service, server)`,
  },
  // Observability
  {
    document: 'docs/observability.md',
    has: 'startSpan: () => undefined',
    after: `await doRun(engine, { goal: 'shell: true' })
      const isSpan = (line: string): boolean => /^invoke_agent runwright .* ms /.test(line)
      assert.ok(printed.some(isSpan), printed.join('|'))`,
  },
  {
    document: 'docs/observability.md',
    has: 'propagation.extract',
    peers: true,
    after: `const { MemoryStore } = await import('runwright/agent')
      const sdk = await import('@opentelemetry/sdk-trace-base')
      const exporter = new sdk.InMemorySpanExporter()
      const spanProcessors = [new sdk.SimpleSpanProcessor(exporter)]
      trace.setGlobalTracerProvider(new sdk.BasicTracerProvider({ spanProcessors }))
      await doRun({ store: new MemoryStore(), roots: [folder], tracer }, { goal: 'shell: true' })
      const names = exporter.getFinishedSpans().map(({ name }: { name: string }) => name)
      assert.ok(names.includes('invoke_agent runwright'))`,
  },
  {
    document: 'docs/observability.md',
    has: "subscribe('runwright.event'",
    after: `const { MemoryStore } = await import('runwright/agent')
      const options = { store: new MemoryStore(), roots: [folder] }
      const { run_id } = await doRun(options, { goal: 'shell: true' })
      assert.deepEqual(printed, [run_id + ' goal_achieved'])`,
  },
  // Operating
  {
    document: 'docs/operating.md',
    has: 'drainOnSignal(service',
    after: `const origin = await originOf(server)
      await tryService(origin, process.env.ALICE_KEY)
      const { get } = await import('runwright/http')
      const headers = { authorization: 'Bearer ' + process.env.SCRAPE_KEY }
      const page = await get(origin + '/metrics', { headers })
      assert.match(page.text, /runwright_runs_ended_total\\{.*\\} 1/)
      const closed = (await import('node:events')).once(server, 'close')
      process.kill(process.pid, 'SIGTERM')
      await closed`,
  },
  {
    document: 'docs/operating.md',
    has: 'roots: (principal)',
    before: `const { mkdirSync } = await import('node:fs')
      for (const name of ['acme', 'globex']) mkdirSync('srv/tenants/' + name, { recursive: true })`,
    after: `for (const tenant of ['acme', 'globex']) {
        const caller = { owner: { id: 'x', tenant } }
        const { details } = await service.engine.create({ goal: 'shell: true' }, { caller })
        assert.match(details.cwd, new RegExp('/srv/tenants/' + tenant + '$'))
      }
      await service.close({ graceMs: 0 })`,
  },
  {
    document: 'docs/operating.md',
    has: 'webhooks: {',
    replace: {
      'secret: process.env.HOOK_SECRET! }':
        'secret: process.env.HOOK_SECRET!, allowPrivate: true }',
    },
    after: `await service.engine.create({ goal: 'shell: true' })
      await (await import('runwright/http')).get(standIn + '/hooked', { timeout: 60_000 })
      await service.close({ graceMs: 0 })`,
  },
  // The service
  {
    document: 'docs/rest-api.md',
    has: 'service.attach(server)',
    after: `await tryService(await originOf(server), process.env.ALICE_KEY)
      await shut(service, server)`,
  },
  {
    document: 'docs/rest-api.md',
    has: '"hitl_enabled": true',
    bugs: true,
    after: `ID=$(curl -fsS $origin/api/runs | grep -o '[0-9a-f-]\\{36\\}' | head -n 1)
      until_status awaiting_human $ID`,
  },
  { document: 'docs/rest-api.md', has: '/resume', after: 'until_status achieved $ID' },
  {
    document: 'docs/rest-api.md',
    has: '"pointer": "/max_iterations"',
    after: `const { MemoryStore } = await import('runwright/agent')
      const { createRunService } = await import('runwright/server')
      const { AsyncClient, HandlerTransport } = await import('runwright/http')
      const engine = { store: new MemoryStore(), roots: [folder] }
      const service = await createRunService({ engine })
      const transport = new HandlerTransport(service.handler)
      const client = new AsyncClient({ transport, baseUrl: 'http://localhost' })
      const json = { goal: 'shell: true', max_iterations: 0 }
      const answer = await client.post('/api/runs', { json })
      assert.deepEqual({ ...answer.json<object>(), detail: '…', request_id: '…' }, sample)
      await client.close(); await service.close()`,
  },
  // The service client
  {
    document: 'docs/service-client.md',
    has: 'https://apps.example/agents',
    bugs: true,
    before: `const { MemoryStore } = await import('runwright/agent')
      const { bearerKeys, createRunService } = await import('runwright/server')
      const service = await createRunService({
        basePath: '/agents',
        engine: {
          store: new MemoryStore(),
          roots: [folder + '/srv/projects/shop'],
          defaultModel: 'two:steps',
          providers: [twoSteps],
        },
        authorize: bearerKeys({ alice: process.env.ALICE_KEY! }),
      })
      const server = (await import('node:http')).createServer(service.handler).listen(0)
      const apps = await originOf(server)`,
    replace: { "'https://apps.example/agents'": 'apps + "/agents"' },
    after: `assert.equal(printed.at(-1), 'achieved'); await shut(service, server)`,
  },
  {
    document: 'docs/service-client.md',
    has: 'RunServiceClient.inProcess',
    before: `process.chdir('srv/projects/shop')`,
    after: `assert.equal(end_reason, 'goal_achieved'); await service.close()`,
  },
  // Evaluations
  {
    document: 'docs/evals.md',
    has: 'formatEvaluation',
    replace: { "'openai:gpt-5', 'anthropic:claude-sonnet-5'": "'builtin:repair'" },
    after: `assert.equal(report.cells[0].achieved, 5, JSON.stringify(report))
      assert.match(printed[0], /builtin:repair +5\\/5 +100% 57-100/)`,
  },
  // Several processes
  {
    document: 'docs/scaling.md',
    has: 'createRunService',
    peers: true,
    after: `await tryService(await originOf(server)); process.kill(process.pid, 'SIGTERM')`,
  },
  {
    document: 'docs/scaling.md',
    has: 'labelsFor',
    peers: true,
    after: `const details = await doRun({ store, roots: [folder] }, { goal: 'shell: true' })
      assert.equal(details.status, 'achieved'); await pool.end()`,
  },
  // Tools
  {
    document: 'docs/tools.md',
    has: 'deploy_preview',
    files: { 'deploy.sh': 'echo "https://$1.test" | tee deployed\n' },
    replace: { './deploy.sh': 'sh ./deploy.sh' },
    after: `${withScript(
      `new Script([
        { calls: [{ tool: 'deploy_preview', args: { branch: 'may' } }] },
        { text: 'There.' },
      ])`,
      'tools: [deploy],',
    )} { goal: 'shell: grep -q may.test deployed' })
      assert.equal(ended.status, 'achieved')`,
  },
  {
    document: 'docs/tools.md',
    has: 'book_room',
    peers: true,
    after: `assert.deepEqual(book.parameters.required, ['from'])
      const booked = await book.execute({ from: '2026-05-02' })
      assert.equal(booked.output, 'booked from Sat May 02 2026, nights: 1')
      assert.equal((await book.execute({ from: 'may' })).exitCode, 1)`,
  },
  {
    document: 'docs/tools.md',
    has: 'bubblewrapExecutor',
    before: `(await import('node:fs')).mkdirSync('srv/toolchains')`,
    after: `const { bubblewrapProblem, MemoryStore } = await import('runwright/agent')
      if ((await bubblewrapProblem()) === null) {
        const options = { store: new MemoryStore(), roots: [folder + '/srv/projects'], executor }
        const details = await doRun(options, { goal: 'shell: true' })
        assert.equal(details.status, 'achieved')
      }`,
  },
  // WebSockets
  {
    document: 'docs/websocket-server.md',
    has: "path: '/echo'",
    after: `const peer = await connectPeer(await originOf(server), '/echo')
      peer.send('hello'); assert.equal(await peer.next(), 'hello')
      peer.end(); await sockets.close(); server.close()`,
  },
  {
    document: 'docs/websocket-server.md',
    has: 'lookUp',
    before: `const lookUpUser = async (token?: string) => (token === 'bearer.x' ? 'ann' : null)
      Object.assign(globalThis, { lookUp: lookUpUser })`,
    after: `const server = (await import('node:http')).createServer().listen(0)
      sockets.attach(server, { path: '/' })
      const peer = await connectPeer(await originOf(server), '/', ['v1', 'bearer.x'])
      assert.equal(await peer.next(), 'hello ann')
      peer.end()
      await assert.rejects(connectPeer(await originOf(server), '/', ['v1']), /401/)
      await sockets.close(); server.close()`,
  },
  {
    document: 'docs/websocket-server.md',
    has: 'publishToMany',
    after: `const server = (await import('node:http')).createServer().listen(0)
      sockets.attach(server, { path: '/' })
      const peer = await connectPeer(await originOf(server), '/')
      publish({ n: 1 }); publishToMany({ n: 2 })
      assert.deepEqual([await peer.next(), await peer.next()], ['{"n":1}', '{"n":2}'])
      peer.end(); await sockets.close(); server.close()`,
  },
  {
    document: 'docs/websocket-client.md',
    has: "send('subscribe')",
    replace: { "'wss://feed.example/prices'": 'feedUrl' },
    before: `const feed = (await import('node:http')).createServer().listen(0)
      const { WebSocketServer: Feed } = await import('runwright/ws')
      const feeds = new Feed({ onConnection: (peer) => {
        peer.onMessage = (message) => { peer.send(message); void peer.close() }
      } })
      feeds.attach(feed)
      const feedUrl = await originOf(feed)`,
    after: `assert.equal((await connection.closed).code, 1000); feed.close()`,
  },
  {
    document: 'docs/websocket-client.md',
    has: 'HandshakeRefusedError, WebSocketClient',
    replace: { "'wss://feed.example/prices'": 'feedUrl' },
    before: `const { createServer } = await import('node:http')
      const feed = createServer((_, r) => void r.end('no')).listen(0)
      const feedUrl = await originOf(feed)`,
    after: `feed.close()`,
  },
  {
    document: 'docs/websocket-client.md',
    has: 'failures++',
    replace: { 'wss://feed.example': '${feedUrl}' },
    before: `const feed = (await import('node:http')).createServer().listen(0)
      const { WebSocketServer: Feed } = await import('runwright/ws')
      const feeds = new Feed({ onConnection: (peer) => {
        peer.onMessage = () => {}
        peer.send('{"seq":7}'); void peer.close()
      } })
      feeds.attach(feed)
      const feedUrl = await originOf(feed)`,
    after: `assert.equal(last, 7); feed.close()`,
  },
  {
    document: 'docs/websocket-client.md',
    has: 'tlsConnectOptions()',
    after: `assert.equal(local.connections.size + asClients.connections.size, 0)`,
  },
]
