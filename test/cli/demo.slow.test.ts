/** The demo that the server of a folder offers. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RunDetails } from 'runwright/agent'
import { AsyncClient } from 'runwright/http'
import { RunServiceClient } from 'runwright/server'
import { start, world, type World } from '../helpers/cli.js'
import { root } from '../helpers/markdown.js'

const PROJECT = join(root, 'examples/demo-project')

interface Offered {
  readonly at: World
  readonly runs: RunServiceClient
  demo(): Promise<RunDetails>
}

async function serveDemo(t: TestContext): Promise<Offered> {
  const at = world(t)
  const server = start(t, at, ['--port', '0', '--root', at.project])
  const [, url] = await server.until(/^runwright listening on (http:\S+)\n/)
  const client = new AsyncClient({ baseUrl: url! })
  const runs = new RunServiceClient({ baseUrl: url! })
  t.after(async () => {
    await runs.close()
    await client.close()
  })
  const demo = async (): Promise<RunDetails> => {
    const response = await client.post('/api/demo')
    assert.equal(response.statusCode, 201, response.text)
    return response.json<RunDetails>()
  }
  return { at, runs, demo }
}

/** What is in a folder: text by path. */
function filesOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
      .map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]),
  )
}

// examples/demo.ts has the same goal, model and project, and its test follows a run to the end.
test('the demo starts to repair a copy, and leaves the project alone', async (t) => {
  const { at, runs, demo } = await serveDemo(t)
  assert.equal((await runs.health()).demo, true)
  const { run_id, cwd, goal, model_name } = await demo()
  assert.deepEqual([goal, model_name], ['node-test', 'builtin:repair'])
  assert.ok(!cwd.startsWith(at.project) && cwd.startsWith(at.state), cwd)
  const kinds = new Set<string>()
  for await (const { kind } of runs.events(run_id)) {
    kinds.add(kind)
    if (kind === 'tool_result') await runs.abort(run_id)
  }
  assert.ok(kinds.has('tool_call') && kinds.has('goal_check'), [...kinds].join())
  assert.deepEqual(filesOf(cwd), filesOf(PROJECT))
  assert.deepEqual(readdirSync(at.project), [])
})

test('each demo has a fresh copy, and copies of runs that have ended are cleared away', async (t) => {
  const { at, runs, demo } = await serveDemo(t)
  // Two at once, whose copies are as they come, and apart.
  const [one, two] = await Promise.all([demo(), demo()])
  assert.notEqual(one.cwd, two.cwd)
  for (const { run_id } of [one, two]) await runs.abort(run_id)
  for (const { run_id } of [one, two]) for await (const _ of runs.events(run_id));
  // A run of somebody who goes on there, and waits at a gate.
  const request = { goal: 'shell: exit 1', cwd: one.cwd, approval: 'all' } as const
  const { run_id: other } = await runs.create(request)
  for await (const { kind } of runs.events(other)) if (kind === 'human_check_required') break
  const folder = join(one.cwd, '..')
  // Nothing but copies is cleared away.
  for (const name of ['notes', 'library-', 'library-1x']) writeFileSync(join(folder, name), 'mine')
  for (let i = 0; i < 5; i++) {
    const { run_id, cwd } = await demo()
    assert.deepEqual(Object.keys(filesOf(cwd)), Object.keys(filesOf(PROJECT)))
    await runs.abort(run_id)
    for await (const _ of runs.events(run_id));
  }
  assert.ok(existsSync(one.cwd) && !existsSync(two.cwd))
  const kept = readdirSync(folder).filter((name) => /^library-\d+$/.test(name))
  assert.equal(kept.length, 6)
  for (const name of ['notes', 'library-', 'library-1x']) assert.ok(existsSync(join(folder, name)))
  assert.ok(folder.startsWith(at.state))
})
