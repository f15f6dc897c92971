import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AgentEvent } from 'runwright/agent'
import { follow, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

type Result = Extract<AgentEvent, { kind: 'tool_result' }>['payload']

test('the result of a shell command reports the files it changed, and no others', async (t) => {
  const commands = [
    'echo two > a.txt; rm old.txt; mkdir -p new; echo hi > new/b.txt; mv kept.txt moved.txt',
    'printf "a\\0b" > bin; chmod +x a.txt; mkdir -p node_modules; echo x > node_modules/x',
    'cat a.txt',
  ]
  const provider = testProvider((_, n) =>
    n < 3
      ? { calls: [{ tool: 'bash', args: { command: commands[n]! } }] }
      : n === 3
        ? { calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'three\n' } }] }
        : n === 4
          ? { calls: [{ tool: 'bash', args: { command: 'touch done' } }] }
          : {},
  )
  const { engine, cwd } = await openEngine(t, { providers: [provider] })
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'a.txt'), 'one\n')
  writeFileSync(join(cwd, 'old.txt'), 'old\n')
  writeFileSync(join(cwd, 'kept.txt'), 'kept\n')
  const { events } = await runToEnd(engine, { goal: 'shell: test -f done' })
  assertInvariants(events)
  const results = events.flatMap((event): Result[] =>
    event.kind === 'tool_result' ? [event.payload] : [],
  )
  const reported = results.map(({ changes = [] }) =>
    changes.map(({ change, from, path }) =>
      [change, ...(from === undefined ? [] : [from]), path].join(' '),
    ),
  )
  assert.deepEqual(reported, [
    ['modified a.txt', 'renamed kept.txt moved.txt', 'created new/b.txt', 'deleted old.txt'],
    ['modified a.txt', 'created bin'],
    [],
    ['modified a.txt'],
    ['created done'],
  ])
  assert.equal(
    results[0]?.changes?.[0]?.diff,
    '--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n',
  )
  assert.match(results[1]?.changes?.[0]?.diff ?? '', /^old mode 100644\nnew mode 100755\n$/)
})

test('the summary of a gate names the files that shell commands changed', async (t) => {
  const provider = testProvider((_, n) =>
    n === 0
      ? { calls: [{ tool: 'bash', args: { command: 'echo x > by-shell.txt; mv a b' } }] }
      : {},
  )
  const { engine, cwd } = await openEngine(t, { providers: [provider] })
  writeFileSync(join(cwd, 'a'), 'moved\n')
  const { details } = await engine.create({
    goal: 'shell: false',
    hitl_enabled: true,
    max_iterations: 2,
  })
  const events = await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const gate = events.at(-1)
  assert.ok(gate?.kind === 'human_check_required')
  assert.match(gate.payload.summary, /Files changed: a, b, by-shell\.txt/)
})
