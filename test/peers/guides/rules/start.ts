/** The README, and the guides of those who start: command line, runs, what they did to files. */
import { plantedFiles } from '../../../helpers/plant-bugs.js'
import type { Guide } from '../rule.js'

type Files = Readonly<Record<string, string>>
const inFolder = (folder: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))

export const start: readonly Guide[] = [
  {
    document: 'README.md',
    installs: true,
    files: inFolder('project', plantedFiles),
    rules: [
      {
        has: /^npm install \.\.\/\S+$/,
        then: 'test "$(ls node_modules)" = runwright',
      },
      {
        has: 'service.attach(server)',
        serves: 'drains',
        then: `until_out 'all 4 tests pass'
          test "$(curl -sS $origin/)" = 'the rest of your app'
          curl -sS $origin/agents/ | grep -qi '<html'`,
        out: /3 of 4 tests fail[^]*(write|edit)_file range\.js[^]*all 4 tests pass/,
      },
      {
        has: '--cwd demo',
        before: '{',
        after: `} > repaired; grep -q 'not met: 6 of 11 tests fail' repaired
          grep -q '^achieved .* all 11 tests pass' repaired`,
      },
      { has: 'using blocking', out: /^\[ 'nut' \]\none\ntwo\n201 \/v1\/items\/2\n$/ },
      {
        has: 'max_iterations',
        bugs: true,
        before: 'npx runwright --root "$shop"',
        after: `curl -sS $origin/api/runs/$id | grep -q '"status":"achieved"'`,
      },
    ],
  },
  {
    document: 'docs/command-line.md',
    rules: [
      {
        has: /^npx runwright$/,
        before: `cd "$shop"; cp "$folder/fixed.js" range.js`,
        // The line may come a moment after the port.
        after: `until grep -q "^runwright listening on " server.out; do sleep 0.05; done
          kill $(pgrep -nf "bin/runwright --port $port"); wait`,
      },
      {
        has: '--model openai:gpt-5-mini',
        before: `curl -sS $stand_in/script -d '[[
          {"tool": "write_file", "args": {"path": "README.md", "content": "--quiet: no output"}}
        ]]'`,
        after: 'test -s README.md',
      },
      {
        has: '| tail -n 1',
        before: '{',
        after: `} > last; grep -q '"status":"achieved"' last`,
      },
    ],
  },
  {
    document: 'docs/runs.md',
    rules: [
      {
        has: 'npx runwright',
        before: 'cd "$shop"; export RUNWRIGHT_MODEL=openai:gpt-5-mini',
        after: 'cd "$folder"',
      },
      { has: '"hitl_enabled": true', after: 'until_status awaiting_human $id' },
      { has: '?kinds=goal_check,tool_call', before: '{', after: '} > followed & follower=$!' },
      {
        has: "'http://127.0.0.1:8000/api/runs?status=awaiting_human'",
        before: '{',
        after: `} > listed; test "$(grep -o $id listed | wc -l)" -ge 2
          grep -q '"kind":"iteration"' listed`,
      },
      {
        has: '"feedback": "the tests are right',
        after: `until_status achieved $id; wait $follower; grep -q '"kind":"run_end"' followed`,
      },
      { has: '"approval": "writes"}', bugs: true, after: 'until_status awaiting_human $id' },
      { has: '"decision": "reject"', after: 'until_status awaiting_human $id' },
      { has: `-d '{"decision": "approve"}'`, after: 'until_status achieved $id' },
      {
        has: 'const edits',
        bugs: true,
        first: `curl -sS $stand_in/script -d '[[
          {"tool": "bash", "args": {"command": "echo hi > made"}},
          {"tool": "write_file", "args": {"path": "package.json", "content": "changed"}}
        ]]'`,
        out: /^wants bash \{ command: 'echo hi > made' \}\nwants write_file [^]*achieved\n$/,
        // The edit of the one call ran it, that of the other kept it from running.
        then: 'test -s $shop/made; if grep -q changed $shop/package.json; then exit 1; fi',
      },
      { has: '/abort', bugs: true, after: 'until_status aborted $id' },
      {
        has: '/retry',
        before: '{',
        after: '} > answer; grep -q "\\"parent_run_id\\":\\"$id\\"" answer',
      },
    ],
  },
  {
    document: 'docs/workspaces.md',
    service: true,
    rules: [
      {
        has: '"max_iterations": 3}',
        after: 'until_status achieved $id',
      },
      {
        has: "'accept: text/x-diff'",
        before: '{',
        after: `} > range.patch; grep -q '^+++ b/range.js' range.patch
          cp faulty.js range.js; patch -sp1 < range.patch; diff range.js $shop/range.js`,
      },
      {
        has: 'files/range.js?at=start',
        before: '{',
        after: `} > start.txt; grep -q 'n > range.to' start.txt
          grep -q '"reason":"start"' start.txt; grep -q '"type":"file"' start.txt`,
      },
      {
        has: '/restore',
        before: '{',
        after: `} > restored.json; grep -q '"restored"' restored.json; diff faulty.js $shop/range.js`,
      },
      { has: 'const fork =', out: /^\{\s+run_id: '[^]* achieved\n$/ },
      {
        has: "workspace: 'isolated'",
        out: /^modified range\.js [^]*\[ 'range\.js' \]/,
        then: 'diff fixed.js $shop/range.js',
      },
      { has: 'runs.message(', bugs: true, then: 'diff fixed.js $shop/range.js' },
      {
        has: 'readFiles:',
        after: `const { createServer } = await import('node:http')
          const server = createServer(service.handler).listen(0)
          await checks.tryService(await checks.originOf(server), process.env['ALICE_KEY'])
          await service.close({ graceMs: 0 })
          server.close()`,
      },
    ],
  },
  {
    document: 'docs/attempts.md',
    service: true,
    rules: [
      {
        has: "'openai:gpt-5'",
        out: /^attempt [12] wins: it was the first to achieve the goal\n[^]* achieved all 4 tests pass\n[^]*the changes are applied\n$/,
      },
      { has: '"choose": "human"', bugs: true, after: 'until_status awaiting_human $id' },
      {
        has: '.gate.candidates[1].run_id',
        before: '{',
        after: `} > candidates; grep -q "status: 'achieved'" candidates
          grep -q '^+++ b/range.js' candidates; diff faulty.js $shop/range.js`,
      },
      {
        has: '"attempt": 2',
        after: `until_status achieved $id; diff fixed.js $shop/range.js`,
      },
      {
        has: 'test -e RELEASED',
        bugs: true,
        after: `until_status failed $id; diff faulty.js $shop/range.js
          curl -sS $origin/api/runs/$id | grep -q '"end_reason":"attempts_failed"'`,
      },
      { has: '$loser/apply', after: 'diff fixed.js $shop/range.js' },
      { has: 'details.delegation', out: /^\{ depth: 1, children: 3 \}\n$/ },
      {
        has: 'translate_docs',
        after: `const { MemoryStore } = await import('runwright/agent')
          const { ScriptedModel } = await import('runwright/agent/testing')
          const model = new ScriptedModel([
            ({ run }) => {
              const path = /as (manual[.]\\w+[.]txt)/.exec(run.goal)?.[1]
              if (path === undefined) {
                const args = { languages: ['French', 'Greek'] }
                return { calls: [{ tool: 'translate_docs', args }] }
              }
              return { calls: [{ tool: 'write_file', args: { path, content: 'text' } }] }
            },
            { text: 'There.' },
          ], { name: 'script:it' })
          const ended = await checks.doRun(
            {
              store: new MemoryStore(),
              roots: ['/srv/projects/shop'],
              workspaceFolder: process.cwd() + '/copies',
              ...checks.scripted(model),
              tools: [translate],
              delegation: {},
            },
            { goal: 'shell: test -s manual.French.txt && test -s manual.Greek.txt', delegation: {} },
          )
          checks.assert.equal(ended.status, 'achieved')
          checks.assert.equal(ended.delegates, 2)`,
      },
    ],
  },
]
