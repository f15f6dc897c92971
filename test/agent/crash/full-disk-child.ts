/**
 * Drives a run whose log fills the file system, and lets it go on when there is room again; then
 * the same, but stops the engine while the file system is full. See full-disk.test.ts.
 */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileStore, RunEngine, type AgentEvent } from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'
import { testProvider } from '../../helpers/engine.js'

const [, , mount = '', root = ''] = process.argv
const ballast = join(mount, 'ballast')
writeFileSync(ballast, Buffer.alloc(400_000))
for (const name of ['loud', 'quiet', 'late']) mkdirSync(join(root, name))
const store = new FileStore({ directory: join(mount, 'data'), segmentBytes: 100_000 })
let refused: () => void = () => undefined
let full = new Promise<void>((resolve) => (refused = resolve))
let hasRoom = false
const append = store.append.bind(store)
store.append = async (runId, records) => {
  try {
    await append(runId, records)
  } catch (error) {
    refused()
    throw error
  }
}
const loud = testProvider(({ run }, n) =>
  run.cwd.endsWith('loud') && !hasRoom
    ? {
        text: `${n}`,
        calls: [{ tool: 'write_file', args: { path: 'a', content: `${n} ${'x'.repeat(20_000)}` } }],
      }
    : { stop: 'refusal' },
)
const engine = await RunEngine.open({
  store,
  roots: [root],
  sealedChecks: 'off',
  providers: [loud],
  defaultModel: 'test:m',
  maxTurnsPerIteration: 50,
})

async function follow(runId: string): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(runId)) {
    for (const { seq, json } of batch) if (seq !== null) events.push(JSON.parse(json) as AgentEvent)
  }
  return events
}

const quiet = await engine.create({ goal: 'shell: false', cwd: join(root, 'quiet') })
await follow(quiet.details.run_id)
const { details } = await engine.create({
  goal: 'shell: false',
  cwd: join(root, 'loud'),
  max_iterations: 1000,
})
const followed = follow(details.run_id)
await full
const denied = await engine
  .create({ goal: `shell: : ${'x'.repeat(32_000)}`, cwd: join(root, 'late') })
  .catch((error: Error) => error)
assert.equal((denied as { code?: string }).code, 'ERR_AGENT_STORE_UNAVAILABLE')
const problem = await engine.check().catch((error: Error) => error.message)
const { status } = await engine.get(details.run_id)
console.log(`${status}, while ${problem}`)
hasRoom = true
rmSync(ballast)
const events = await followed
assertInvariants(events)
assert.equal((await engine.get(details.run_id)).end_reason, 'stuck')
const asked = events.filter(({ kind }) => kind === 'tool_call')
const results = events.filter((event) => event.kind === 'tool_result')
assert.equal(results.length, asked.length)
assert.ok(results.every(({ payload }) => payload.exit_code === 0), 'every result was kept')
assert.equal((await engine.get(quiet.details.run_id)).end_reason, 'stuck')
await engine.check()
const after = await engine.create({ goal: 'shell: true', cwd: join(root, 'late') })
await follow(after.details.run_id)
assert.equal((await engine.get(after.details.run_id)).status, 'achieved')

hasRoom = false
full = new Promise<void>((resolve) => (refused = resolve))
writeFileSync(ballast, Buffer.alloc(200_000))
const last = await engine.create({
  goal: 'shell: false',
  cwd: join(root, 'loud'),
  max_iterations: 1000,
})
await full
await engine.close()
console.log('closed while the disk is full')
hasRoom = true
rmSync(ballast)
const again = new FileStore({ directory: join(mount, 'data') })
const next = await RunEngine.open({
  store: again,
  roots: [root],
  sealedChecks: 'off',
  providers: [loud],
  defaultModel: 'test:m',
})
const stored: AgentEvent[] = []
for await (const batch of await next.subscribe(last.details.run_id)) {
  for (const { json } of batch) stored.push(JSON.parse(json) as AgentEvent)
}
assertInvariants(stored)
assert.equal((await next.get(last.details.run_id)).end_reason, 'stuck')
assert.deepEqual(again.quarantined, [])
assertInvariants(await again.read(details.run_id, 0, 100_000))
await next.close()
console.log('all there')
