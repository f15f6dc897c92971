/** The guides of hosts: mounting, operating, clients, several processes, tests. */
import type { Guide, Rule } from '../rule.js'

/** Calls the service below /agents of the program that listens. */
const TRY = `node try.mjs $origin/agents; curl -sS $origin/agents/ | grep -qi '<html'`
const mounted = (has: string): Rule => ({ has, serves: 'stops', then: TRY })

const TRY_PROGRAM = `import { RunServiceClient } from 'runwright/server'
  const [baseUrl, key] = process.argv.slice(2)
  const runs = new RunServiceClient({ baseUrl, key })
  const { run_id } = await runs.create({ goal: 'shell: true' })
  for (const transport of ['sse', 'websocket']) {
    for await (const _ of runs.events(run_id, { transport }));
  }
  const { status } = await runs.get(run_id)
  await runs.close()
  if (status !== 'achieved') throw new Error(status)`

export const service: readonly Guide[] = [
  {
    document: 'docs/mounting.md',
    packages: [
      'express',
      'fastify',
      'koa',
      'hono',
      '@hono/node-server',
      '@nestjs/common',
      '@nestjs/core',
      '@nestjs/platform-express',
      'reflect-metadata',
    ],
    files: { 'try.mjs': TRY_PROGRAM },
    rules: [
      { has: 'import { MemoryStore }', after: 'await service.close()' },
      {
        ...mounted('service.handler(request, response, () => {'),
        then: `${TRY}; test "$(curl -sS $origin/hello)" = 'hello from the host'`,
      },
      mounted('express()'),
      mounted('fastify()'),
      mounted('new Koa()'),
      mounted('new Hono()'),
      mounted('NestFactory'),
    ],
  },
  {
    document: 'docs/observability.md',
    packages: ['@opentelemetry'],
    rules: [
      {
        has: 'startSpan: () => undefined',
        after: `await checks.doRun(engine, { goal: 'shell: true' })`,
        out: /^invoke_agent runwright .* ms /m,
      },
      {
        has: 'propagation.extract',
        after: `const { MemoryStore } = await import('runwright/agent')
          const sdk = await import('@opentelemetry/sdk-trace-base')
          const exporter = new sdk.InMemorySpanExporter()
          const spanProcessors = [new sdk.SimpleSpanProcessor(exporter)]
          trace.setGlobalTracerProvider(new sdk.BasicTracerProvider({ spanProcessors }))
          const options = { store: new MemoryStore(), roots: ['.'], tracer }
          await checks.doRun(options, { goal: 'shell: true' })
          const names = exporter.getFinishedSpans().map(({ name }) => name)
          checks.assert.ok(names.includes('invoke_agent runwright'))`,
      },
      {
        has: "subscribe('runwright.event'",
        after: `const { MemoryStore } = await import('runwright/agent')
          const options = { store: new MemoryStore(), roots: ['.'] }
          await checks.doRun(options, { goal: 'shell: true' })`,
        out: /^[0-9a-f-]{36} goal_achieved\n$/,
      },
    ],
  },
  {
    document: 'docs/operating.md',
    files: {
      'try.mjs': TRY_PROGRAM,
      'srv/tenants/acme/keep': '',
      'srv/tenants/globex/keep': '',
    },
    rules: [
      {
        has: 'drainOnSignal(service',
        serves: 'drains',
        then: `node try.mjs $origin $ALICE_KEY
          curl -sS $origin/metrics -H "authorization: Bearer $SCRAPE_KEY" > metrics
          grep -q 'runwright_runs_ended_total{.*} 1' metrics`,
      },
      {
        has: 'roots: (principal)',
        after: `for (const tenant of ['acme', 'globex']) {
            const caller = { owner: { id: 'x', tenant } }
            const request = { goal: 'shell: true', model_name: 'openai:gpt-5-mini' }
            const { details } = await service.engine.create(request, { caller })
            checks.assert.match(details.cwd, new RegExp('/srv/tenants/' + tenant + '$'))
          }
          await service.close({ graceMs: 0 })`,
      },
      {
        has: 'webhooks: {',
        // The stand-in is on this machine, where webhooks must not go.
        replace: {
          'secret: process.env.HOOK_SECRET! }':
            'secret: process.env.HOOK_SECRET!, allowPrivate: true }',
        },
        after: `const request = { goal: 'shell: true', model_name: 'openai:gpt-5-mini' }
          await service.engine.create(request)
          const { get } = await import('runwright/http')
          await get('https://chat.example/hooked', { timeout: 60_000 })
          await service.close({ graceMs: 0 })`,
      },
    ],
  },
  {
    document: 'docs/rest-api.md',
    rules: [
      { has: 'service.attach(server)', serves: 'stays' },
      {
        has: '"hitl_enabled": true',
        after: 'export UNTIL_KEY=$ALICE_KEY; until_status awaiting_human $id',
      },
      { has: '/check-files', before: '{', after: '} > files; grep -q test/range.test.js files' },
      { has: '/resume', after: 'until_status achieved $id' },
      {
        has: '"pointer": "/max_iterations"',
        then: `command curl -sS $origin/api/runs -H "authorization: Bearer $ALICE_KEY" \\
            -H 'content-type: application/json' -d '{"goal": "shell: true", "max_iterations": 0}' > problem.json
          node -e '
            const [said, given] = process.argv.slice(1).map((file) => require(file))
            const rest = { detail: "…", request_id: "…" }
            assert.deepEqual({ ...given, ...rest }, said)' "$PWD/$block" "$PWD/problem.json"`,
      },
    ],
  },
  {
    document: 'docs/service-client.md',
    files: {
      'apps.ts': `import { createServer } from 'node:http'
        import { MemoryStore } from 'runwright/agent'
        import { bearerKeys, createRunService } from 'runwright/server'
        import { scripted } from './checks.ts'
        const fix = "sed -i 's/n > range.to/n < range.to/; s/to + range/to - range/' range.js"
        const { handler } = await createRunService({
          basePath: '/agents',
          engine: {
            store: new MemoryStore(),
            roots: ['/srv/projects/shop'],
            ...scripted([
              { text: 'I look around.' },
              { calls: [{ tool: 'bash', args: { command: fix } }] },
              { text: 'Done.' },
            ]),
          },
          authorize: bearerKeys({ alice: process.env['ALICE_KEY']! }),
        })
        createServer(handler).listen(8000, '127.0.0.1')`,
    },
    rules: [
      {
        has: 'https://apps.example/agents',
        // Your service, which is not on the stand-in.
        replace: { 'https://apps.example': 'http://127.0.0.1:8000' },
        first: 'node $loader apps.ts & until_listens apps.ts',
        out: /^3 of 4 tests fail\n[^]*all 4 tests pass\nachieved\n$/,
      },
      {
        has: 'RunServiceClient.inProcess',
        after: `checks.assert.equal(end_reason, 'goal_achieved')`,
      },
    ],
  },
  {
    document: 'docs/scaling.md',
    packages: ['pg'],
    postgres: true,
    files: { 'try.mjs': TRY_PROGRAM },
    rules: [
      { has: 'createRunService', serves: 'drains', then: 'node try.mjs $origin' },
      {
        has: 'labelsFor',
        after: `const ended = await checks.doRun({ store, roots: ['.'] }, { goal: 'shell: true' })
          checks.assert.equal(ended.status, 'achieved'); await pool.end()`,
      },
    ],
  },
  {
    document: 'docs/testing-agents.md',
    rules: [
      { has: 'asks for the stock', out: /pass 1\b/ },
      { has: 'gate_timeout', out: /pass 1\b/ },
      { has: 'testRunStore', out: /fail 0\b/ },
    ],
  },
  {
    document: 'docs/evals.md',
    rules: [
      {
        has: 'formatEvaluation',
        // A stand-in for a provider has no prices, which the budget needs.
        replace: {
          "'openai:gpt-5', 'anthropic:claude-sonnet-5'": "'builtin:repair'",
          'attempts: 5,': `attempts: 5,
            engine: async (folder) => {
              const { MemoryStore, RunEngine } = await import('runwright/agent')
              const { repairModel } = await import('runwright/repair')
              const providers = [repairModel()]
              return await RunEngine.open({ store: new MemoryStore(), roots: [folder], providers })
            },`,
        },
        first: 'cp fixed.js "$shop/range.js"',
        after: 'checks.assert.equal(report.cells[0]?.achieved, 5, JSON.stringify(report))',
        out: /builtin:repair +5\/5 +100% 57-100/,
      },
    ],
  },
]
