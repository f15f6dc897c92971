/** Isolated runs in a store that several processes share, each with copies of its own. */
import assert from 'node:assert/strict'
import {
  chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine, type ModelProvider } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { Children } from '../../helpers/kill.js'
import { noPostgres, openDatabase } from './postgres.js'

const children = new Children<typeof import('./kill-children.js')>(
  new URL('kill-children.ts', import.meta.url),
)

/** Long enough to be renewed on a busy machine; the heir waits for its end. */
const LEASE_MS = 3_000
const { connection, newSchema, pool } = await openDatabase()

describe('isolated runs in a PostgresStore', { skip: noPostgres }, () => {
  for (const applier of ['that finished the run', 'that never worked on it'] as const) {
    test(`after SIGKILL another process rebuilds the copy; applied by one ${applier}`, async (t) => {
      const { schema, cwd, original, front, child, runId, half } = await halfWay(t)
      const { iteration } = half.at(-1)!
      const checkpoints = half.filter(({ kind }) => kind === 'checkpoint')
      assert.equal(checkpoints.at(-1)?.iteration, iteration - 1)
      child.kill()
      await child.ended
      const heard: string[] = []
      const heir = await open(t, schema, cwd, ['worker'], resuming(heard))
      const events = await follow(front, runId)
      assertInvariants(events)
      const ended = await front.get(runId)
      assert.deepEqual([ended.status, ended.changes], ['achieved', 'pending'])
      assert.equal(events.filter(({ kind }) => kind === 'run_recovered').length, 1)
      assert.deepEqual(contents(cwd), original)
      // The model was told, once, and sees the files of the newest checkpoint.
      assert.match(heard[0]!, /copy that was given the files of the newest checkpoint.* lost/s)
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

  for (const workspace of ['isolated', 'in_place'] as const) {
    test(`a process that is closed hands over all files of a run that is ${workspace}`, async (t) => {
      const { schema, cwd, original, front, child, runId, workspaceFolder } =
        await halfWay(t, workspace)
      const isolated = workspace === 'isolated'
      const folder = isolated ? join(workspaceFolder, runId, basename(cwd)) : cwd
      while (!existsSync(join(folder, 'stray'))) await nextTurn()
      child.kill('SIGTERM')
      assert.equal((await child.ended).signal, null)
      const left = contents(folder)
      assert.equal(left['c']?.[1], 'stopped\n')
      assert.equal(left['gone'], undefined)
      if (isolated) rmSync(workspaceFolder, { recursive: true })
      const heard: string[] = []
      let found: Record<string, unknown> = {}
      const provider = testProvider(({ messages, run }, n) => {
        if (n === 0) found = contents(run.cwd)
        if (n === 0) heard.push(...messages.flatMap((one) => (one.role === 'user' ? one.text : [])))
        const args = { path: 'b', content: 'new b\n' }
        return n === 0 ? { calls: [{ tool: 'write_file', args }] } : {}
      })
      await open(t, schema, cwd, ['worker'], provider)
      const events = await follow(front, runId)
      assertInvariants(events)
      assert.equal((await front.get(runId)).status, 'achieved')
      assert.deepEqual(found, left)
      assert.doesNotMatch(heard.join(), /lost/)
      const at = events.findIndex(({ kind }) => kind === 'run_suspended')
      const before = events[at - 1]!
      const reason = before.kind === 'checkpoint' ? before.payload.reason : null
      assert.equal(reason, isolated ? 'shutdown' : null)
      const kinds = events.map(({ kind }) => kind)
      assert.ok(!kinds.includes('run_recovered') && !kinds.includes('user_message'))
      const starts = kinds.filter((kind) => kind === 'run_suspended').length
      assert.equal(starts, 1)
      if (isolated) assert.deepEqual(contents(cwd), original)
    })
  }
})

/** A run that another process drives, and that is in the middle of its second iteration. */
async function halfWay(t: TestContext, workspace = 'isolated') {
  const schema = newSchema()
  const cwd = scratch(t)
  mkdirSync(join(cwd, 'bin'))
  for (const name of ['a', 'b', 'bin/run', 'gone']) writeFileSync(join(cwd, name), `old ${name}\n`)
  chmodSync(join(cwd, 'bin/run'), 0o755)
  writeFileSync(join(cwd, '.env'), 'not stored\n')
  const original = contents(cwd)
  const front = await open(t, schema, cwd)
  const workspaceFolder = scratch(t)
  const place = { connection, schema, root: cwd, workspaceFolder, leaseMs: LEASE_MS }
  const child = children.start(t, 'driveHalfWay', place)
  const goal = 'shell: grep -q new a && grep -q new b'
  const { details } = await front.create({ goal, cwd, workspace })
  const runId = details.run_id
  const half = await follow(
    front, runId, (event) => event.kind === 'tool_started' && event.payload.effect === 'unsafe',
  )
  return { schema, cwd, original, front, child, runId, half, workspaceFolder }
}

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
    sealedChecks: 'off',
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
