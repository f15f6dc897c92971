import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentEvent, RunDetails } from 'runwright/agent'
import { openEngine, runToEnd, scratch } from '../helpers/engine.js'

/** Tests in a folder whose name says nothing about them. */
const QA = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { total } from '../src/total.js'

test('a total', () => {
  assert.ok(total([1, 2]) > 2)
})

test('of nothing', () => {
  assert.equal(total([]), 0)
})
`

/** Runs `builtin:repair` on a project; also returns the paths of its edits. */
async function repair(
  t: TestContext,
  files: Readonly<Record<string, string>>,
): Promise<{ details: RunDetails; cwd: string; edited: ReadonlySet<string> }> {
  const cwd = scratch(t)
  const all = { 'package.json': '{"type": "module"}', ...files }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(join(cwd, path, '..'), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
  const { engine } = await openEngine(t, { cwd, sealedChecks: 'prefer' })
  const request = { goal: 'node-test: qa/total.js', model_name: 'builtin:repair' }
  const { details, events } = await runToEnd(engine, { ...request, max_iterations: 6 })
  return { details, cwd, edited: new Set(events.flatMap(editedPath)) }
}

function editedPath(event: AgentEvent): string[] {
  return event.kind === 'tool_call' && event.payload.tool === 'edit_file'
    ? [String(event.payload.args['path'])]
    : []
}

test('repair changes the source, and no test in a folder called qa', async (t) => {
  const { details, cwd, edited } = await repair(t, {
    'src/total.js': 'export const total = (all) => all.reduce((sum, n) => sum - n, 0)\n',
    'qa/total.js': QA,
  })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.match(readFileSync(join(cwd, 'src/total.js'), 'utf8'), /sum \+ n/)
  assert.equal(readFileSync(join(cwd, 'qa/total.js'), 'utf8'), QA)
  assert.deepEqual([...edited], ['src/total.js'])
})

test('repair gives up where only a test could be changed', async (t) => {
  const alone = QA.replace(/import .*total.*/, 'const total = (all) => all.length - all.length')
  const { details, cwd, edited } = await repair(t, { 'qa/total.js': alone })
  assert.equal(details.status, 'failed')
  assert.equal(readFileSync(join(cwd, 'qa/total.js'), 'utf8'), alone)
  assert.deepEqual([...edited], [])
})
