/** Isolated runs in a store that several processes share, each with copies of its own. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import type pg from 'pg'
import { PostgresStore, RunEngine, type ModelProvider } from 'runwright/agent'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { noPostgres, startPostgres, type Postgres } from './postgres.js'
import { childScript } from './workers.js'

const LEASE_MS = 1_000
let postgres: Postgres
let pool: pg.Pool
let schemas = 0

describe('isolated runs in a PostgresStore', { skip: noPostgres }, () => {
  before(async () => {
    postgres = await startPostgres({ fsync: 'off' })
    pool = postgres.pool({ max: 30 })
  })
  after(async () => {
    await pool.end()
    await postgres.remove()
  })

  for (const applier of ['that finished the run', 'that never worked on it'] as const) {
    test(`after SIGKILL another process rebuilds the copy; applied by one ${applier}`, async (t) => {
      const schema = `i${(schemas += 1)}`
      const cwd = scratch(t)
      mkdirSync(join(cwd, 'bin'))
      for (const name of ['a', 'b', 'bin/run']) writeFileSync(join(cwd, name), `old ${name}\n`)
      chmodSync(join(cwd, 'bin/run'), 0o755)
      writeFileSync(join(cwd, '.env'), 'not stored\n')
      const original = contents(cwd)
      const front = await open(t, schema, cwd)
      const child = spawn(process.execPath, [
        childScript(t, 'isolated-child.ts'),
        JSON.stringify({
          port: postgres.port, schema, root: cwd, workspaceFolder: scratch(t), leaseMs: LEASE_MS,
        }),
      ], { stdio: ['ignore', 'inherit', 'inherit'] })
      t.after(() => child.kill('SIGKILL'))
      const goal = 'shell: grep -q new a && grep -q new b'
      const { details } = await front.create({ goal, cwd, workspace: 'isolated' })
      const runId = details.run_id
      const half = await follow(
        front, runId, (event) => event.kind === 'tool_started' && event.payload.effect === 'unsafe',
      )
      const { iteration } = half.at(-1)!
      const checkpoints = half.filter(({ kind }) => kind === 'checkpoint')
      assert.equal(checkpoints.at(-1)?.iteration, iteration - 1)
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      const heard: string[] = []
      const heir = await open(t, schema, cwd, ['worker'], resuming(heard))
      const events = await follow(front, runId)
      assertInvariants(events)
      const ended = await front.get(runId)
      assert.deepEqual([ended.status, ended.changes], ['achieved', 'pending'])
      assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 1)
      assert.deepEqual(contents(cwd), original)
      // The model was told, once, and sees the files of the newest checkpoint.
      assert.match(heard[0]!, /copy that has the files of the newest checkpoint.* lost/s)
      assert.equal(events.filter(({ kind }) => kind === 'user_message').length, 1)
      assert.match(heard[1]!, /new a\nold b\n/)
      const [by, other] = applier === 'that finished the run' ? [heir, front] : [front, heir]
      const plan = await other.workspaces.apply(runId, { dry_run: true })
      assert.deepEqual([...plan.applied].sort(), ['a', 'b'])
      assert.deepEqual(contents(cwd), original)
      await by.workspaces.apply(runId, {})
      const mode = original['a']![0]
      const changed = { ...original, a: [mode, 'new a\n'], b: [mode, 'new b\n'] }
      assert.deepEqual(contents(cwd), changed)
      assert.equal((await other.get(runId)).changes, 'applied')
    })
  }
})

/** The model of the process that takes over; notes what it is told, and what the files contain. */
function resuming(heard: string[]): ModelProvider {
  const texts = (role: string, messages: readonly { readonly role: string }[]): string =>
    JSON.stringify(messages.filter((message) => message.role === role))
  return testProvider(({ messages }, n) => {
    const last = messages.at(-1)
    if (n === 0) {
      heard.push(texts('user', messages))
      return { calls: [{ tool: 'bash', args: { command: 'cat a b' } }] }
    }
    if (n > 1) return { text: 'done' }
    heard.push(last?.role === 'tool' ? last.output : '')
    return { calls: [{ tool: 'write_file', args: { path: 'b', content: 'new b\n' } }] }
  })
}

async function open(
  t: TestContext,
  schema: string,
  root: string,
  labels: readonly string[] = [],
  provider: ModelProvider = testProvider(() => ({})),
): Promise<RunEngine> {
  const labelsFor = (): readonly string[] => ['worker']
  const engine = await RunEngine.open({
    store: new PostgresStore({ pool, schema, leaseMs: LEASE_MS, labels, labelsFor }),
    roots: [root],
    workspaceFolder: scratch(t),
    providers: [provider],
    defaultModel: 'test:m',
  })
  t.after(() => engine.close())
  return engine
}

/** Mode and content of every file below a folder. */
function contents(folder: string): Record<string, readonly [mode: number, content: string]> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  const files = names.filter((name) => lstatSync(join(folder, name)).isFile())
  return Object.fromEntries(
    files.map((name) => {
      const path = join(folder, name)
      return [name, [lstatSync(path).mode, readFileSync(path, 'utf8')]]
    }),
  )
}
