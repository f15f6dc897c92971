/** The content of a run's checkpoints, and the changes that it reports between them. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, StoreError, type AgentEvent, type JsonObject } from 'runwright/agent'
import { bash, follow, payloads, type Said } from '../../helpers/engine.js'
import { withCalls } from '../../helpers/faulty-store.js'
import type { Files } from '../../helpers/files.js'
import { World } from '../../helpers/world.js'
import { FILES, play } from './play.js'

/** Plays the turns and approves every gate but the last one; returns their summaries as well. */
async function playGates(
  t: TestContext,
  files: Files,
  turns: readonly Said[],
  request: JsonObject,
  approvals = Infinity,
): Promise<{ readonly events: readonly AgentEvent[]; readonly summaries: readonly string[] }> {
  const world = new World(t, { files, turns })
  const engine = await world.open()
  const { details } = await engine.create({ goal: 'shell: false', cwd: world.cwd, ...request })
  const summaries: string[] = []
  const events = await follow(engine, details.run_id, (event) => {
    if (event.kind !== 'human_check_required') return false
    summaries.push(event.payload.summary)
    const decision = summaries.length <= approvals ? 'approve' : 'abort'
    void engine.resume(details.run_id, { decision })
    return false
  })
  return { events, summaries }
}

test('checkpoints of an isolated run hold the files of its copy', async (t) => {
  const { events } = await play(t, [bash('echo x > goal.txt')], { workspace: 'isolated' })
  const counts = payloads(events, 'checkpoint').map(({ reason, files }) => [reason, files])
  assert.deepEqual(counts, [['start', 1], ['iteration', 2]])
  assert.equal(payloads(events, 'run_end')[0]?.changes?.files, 1)
})

test('an iteration that changed nothing has no checkpoint', async (t) => {
  const { events } = await play(
    t,
    [bash('true'), {}, bash('echo x > b.txt', 'rm b.txt'), {}, bash('echo x > b.txt'), {}],
    { max_iterations: 3 },
  )
  const made = events.filter(({ kind }) => kind === 'checkpoint')
  assert.deepEqual(made.map(({ iteration }) => iteration), [1, 3])
})

test('the end of a run tells the net change since its start', async (t) => {
  const { events } = await play(t, [
    bash('sed -i s/two/TWO/ a.txt', 'mv a.txt c.txt', 'echo new > b.txt', 'echo x > goal.txt'),
  ])
  const [end] = payloads(events, 'run_end')
  assert.equal(end?.achieved, true)
  assert.equal(end?.changes?.files, 4)
})

test('edits that were taken back are no net change, at the end and at a gate', async (t) => {
  const back = bash(
    'for i in 1 2 3 4 5; do cp a.txt x; sed -i "s/^/$i/" a.txt; cp x a.txt; done; rm x',
    'sed -i s/two/TWO/ a.txt',
  )
  const turns = [back, {}, bash('sed -i s/TWO/two/ a.txt'), {}]
  const { summaries, events } = await playGates(t, FILES, turns, {
    max_iterations: 3, hitl_enabled: true,
  }, 2)
  assert.match(summaries[0] ?? '', /Files changed since the last gate: a\.txt \(\+1 -1\)\n/)
  assert.match(summaries[1] ?? '', /Files changed since the last gate: a\.txt \(\+1 -1\)\n/)
  const [end] = payloads(events, 'run_end')
  assert.deepEqual(end?.changes, { files: 0, additions: 0, deletions: 0 })
})

test('a gate for a single call shows what changed until then', async (t) => {
  const turns = [bash('echo 1 > b.txt'), bash('echo 2 > c.txt')]
  const { summaries } = await playGates(t, {}, turns, { max_iterations: 1, approval: 'writes' })
  assert.match(summaries[0] ?? '', /No file changed since the last gate/)
  assert.match(summaries[1] ?? '', /since the last gate: b\.txt \(\+1\)/)
})

test('a run waits while the store of contents is unavailable', async (t) => {
  const store = new MemoryStore()
  let refusals = 2
  const objects = withCalls(store.objects, {
    put: async (all) => {
      if (refusals-- > 0) throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'try later')
      await store.objects.put(all)
    },
  })
  const { events } = await play(t, [bash('echo x > goal.txt')], {}, { objects })
  assert.equal(payloads(events, 'checkpoint').length, 2)
  assert.equal(payloads(events, 'run_end')[0]?.status, 'achieved')
})
