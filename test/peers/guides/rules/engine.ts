/** The guides of the engine: goals, models, tools, and what its runs are told and give back. */
import type { Guide } from '../rule.js'

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

/** Waits for the end of the run whose details are in `run.json`. */
const ACHIEVED = `id=$(node -p 'require("./run.json").run_id'); until_status achieved $id`

/** An engine on the folder of the guide, and options for it. */
const doRun = (options: string, request: string): string => `
  const { MemoryStore: Store } = await import('runwright/agent')
  const ended = await checks.doRun(
    { store: new Store(), roots: [process.cwd()], ${options} },
    ${request},
  )`

export const engine: readonly Guide[] = [
  {
    document: 'docs/goals.md',
    service: true,
    rules: [
      {
        has: '"goal": "node-test"',
        then: `curl -sS $origin/api/runs -H 'content-type: application/json' -d @$block > run.json
          ${ACHIEVED}`,
      },
      {
        has: 'const smoke',
        after: `const { createServer } = await import('node:http')
          const server = createServer((_, response) => response.end('hi')).listen(0)
          const port = (await checks.originOf(server)).split(':').at(-1)
          ${doRun('goals: [smoke]', `{ goal: 'smoke: ' + port }`)}
          checks.assert.equal(ended.status, 'achieved')
          server.close()`,
      },
    ],
  },
  {
    document: 'docs/judged-goals.md',
    rules: [
      { has: 'judgeModel', after: `checks.assert.match(details.model_name, /claude/)` },
    ],
  },
  {
    document: 'docs/held-out-tests.md',
    service: true,
    files: { 'srv/held-out/shop/held-out/a.test.mjs': '', 'var/lib/keep': '' },
    rules: [
      {
        has: '"held-out/total.test.mjs"',
        before: '{',
        after: `} > run.json; ${ACHIEVED}
          curl -sS $origin/api/runs/$id | grep -q '"holdout":true'`,
      },
    ],
  },
  {
    document: 'docs/instructions.md',
    service: true,
    files: { 'var/lib/keep': '' },
    rules: [
      {
        has: 'Answer in French',
        before: '{',
        after: `} > run.json; grep -q '"instructions":"Answer in French' run.json`,
      },
    ],
  },
  {
    document: 'docs/long-runs.md',
    service: true,
    rules: [
      {
        has: '"compaction": "drop"',
        before: '{',
        after: `} > run.json; ${ACHIEVED}`,
      },
      { has: 'the agent remembers', out: /pass 1\b/ },
    ],
  },
  {
    document: 'docs/results.md',
    service: true,
    rules: [
      {
        has: '"workspace": "none"',
        before: '{',
        after: `} > run.json; ${ACHIEVED}
          curl -sS $origin/api/runs/$id | grep -q '"total":249.9'`,
      },
      {
        has: 'new ScriptedModel',
        out: /^It is invoice 2026-118, over 249\.90\. \{ number: '2026-118', total: 249\.9 \}\n$/,
      },
    ],
  },
  {
    document: 'docs/mcp.md',
    files: { 'docs-server.js': DOCS_SERVER, 'var/lib/keep': '' },
    rules: [
      {
        has: 'openMcpServer',
        after: `checks.assert.deepEqual(docs.tools().map(({ name }) => name), ['docs__search'])`,
      },
    ],
  },
  {
    document: 'docs/models.md',
    service: true,
    files: {
      'play/sum.js': 'export const sum = (a, b) => a - b\n',
      'play.mjs': `import { MemoryStore, RunEngine } from 'runwright/agent'
        const scripts = process.cwd() + '/scripts'
        const engine = await RunEngine.open({ store: new MemoryStore(), roots: ['play'], scripts })
        const request = { goal: "shell: grep -q 'a + b' sum.js", model_name: 'scripted:fix.json' }
        const { details } = await engine.create(request)
        for await (const _ of await engine.subscribe(details.run_id));
        const { status, usage, reason } = await engine.get(details.run_id)
        await engine.close()
        if (status !== 'achieved' || usage.input_tokens !== 1200) throw new Error(status + reason)`,
    },
    rules: [
      {
        has: 'const groq',
        after: `const model = groq.create('openai/gpt-oss-120b')
          const run = { run_id: 'r', iteration: 1, turn: 0, goal: 'g', check: null, cwd: '/' }
          const messages = [{ role: 'user', text: 'hello?' }] as const
          const signal = AbortSignal.timeout(60_000)
          const turn = await model.complete({ system: 's', messages, tools: [], signal, run })
          checks.assert.equal(turn.message.text, 'hello')`,
      },
      {
        has: '"fallback_models"',
        before: '{',
        after: `} > run.json; grep -q '"active_model"' run.json`,
      },
      {
        has: '"media_type": "image/png"',
        // The image is cut short in the text.
        then: `sed 's/AAAANSUhEUgAA…/AAAAA/' $block > request.json
          curl -sS $origin/api/runs -H 'content-type: application/json' -d @request.json > run.json
          grep -q '"images":1' run.json`,
      },
      {
        has: 'const greeter',
        after: `const ended = await checks.doRun(engine, { goal: 'shell: grep -q hello hello.txt' })
          checks.assert.equal(ended.status, 'achieved')`,
      },
      {
        has: '"last_tool_result_contains"',
        then: `mkdir scripts; cp $block scripts/fix.json; node play.mjs`,
      },
      {
        has: 'messages so far',
        after: `${doRun('...checks.scripted(model)', `{ goal: 'shell: false', max_iterations: 1 }`)}
          checks.assert.equal(ended.end_reason, 'max_iterations'); model.assertUsedUp()`,
      },
    ],
  },
  {
    document: 'docs/tools.md',
    service: true,
    packages: ['zod'],
    files: {
      'deploy.sh': '#!/bin/sh\necho "https://$1.test" | tee deployed\n',
      'srv/toolchains/keep': '',
    },
    rules: [
      {
        has: 'deploy_preview',
        first: 'chmod +x deploy.sh',
        after: `${doRun(
          `...checks.scripted([
            { calls: [{ tool: 'deploy_preview', args: { branch: 'may' } }] },
            { text: 'There.' },
          ]), tools: [deploy]`,
          `{ goal: 'shell: grep -q may.test deployed' }`,
        )}
          checks.assert.equal(ended.status, 'achieved')`,
      },
      {
        has: "name: 'git_log'",
        first: `git -c init.defaultBranch=may init -q
          git -c user.name=a -c user.email=a@a.test commit -q --allow-empty -m 'the first'`,
        after: `${doRun(
          `...checks.scripted([
            { calls: [{ tool: 'git_log', args: { branch: 'may' } }] },
            { expect: { last_tool_result_contains: 'the first' }, text: 'There.' },
          ]), tools: [log]`,
          `{ goal: 'shell: false', max_iterations: 1 }`,
        )}
          checks.assert.equal(ended.end_reason, 'max_iterations')`,
      },
      {
        has: 'book_room',
        after: `const { assert } = checks
          assert.deepEqual(book.parameters['required'], ['from'])
          const booked = await book.execute({ from: '2026-05-02' }, {} as never)
          assert.equal(booked.output, 'booked from Sat May 02 2026, nights: 1')
          assert.equal((await book.execute({ from: 'may' } as never, {} as never)).exitCode, 1)`,
      },
      {
        has: 'bubblewrapExecutor',
        after: `const { bubblewrapProblem } = await import('runwright/agent')
          if ((await bubblewrapProblem()) === null) {
            ${doRun('executor', `{ goal: 'shell: true' }`)}
            checks.assert.equal(ended.status, 'achieved')
          }`,
      },
    ],
  },
]
