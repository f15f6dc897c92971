/**
 * Drives runs whose logs fill the file system, then further runs; see full-disk.test.ts.
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
const full = new Promise<void>((resolve) => (refused = resolve))
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
  run.cwd.endsWith('loud')
    ? {
        text: `${n}`,
        calls: [{ tool: 'write_file', args: { path: 'a', content: `${n} ${'x'.repeat(20_000)}` } }],
      }
    : { stop: 'refusal' },
)
const engine = await RunEngine.open({
  store,
  roots: [root],
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
  .create({ goal: 'shell: true', cwd: join(root, 'late'), check: 'x'.repeat(32_000) })
  .catch((error: Error) => error)
console.log(
  denied instanceof Error ? `refused: ${denied.message}` : 'there was room for a small run',
)
rmSync(ballast)
const events = await followed
assertInvariants(events)
const { status, end_reason, error } = await engine.get(details.run_id)
console.log(`${status} ${end_reason} ${error?.code} ${error?.message}`)
assert.equal((await engine.get(quiet.details.run_id)).end_reason, 'stuck')
const after = await engine.create({ goal: 'shell: true', cwd: join(root, 'late') })
await follow(after.details.run_id)
assert.equal((await engine.get(after.details.run_id)).status, 'achieved')
await engine.close()
const again = new FileStore({ directory: join(mount, 'data') })
await again.open()
assert.deepEqual(again.quarantined, [])
assertInvariants(await again.read(details.run_id, 0, 100_000))
await again.close()
console.log('all there')
