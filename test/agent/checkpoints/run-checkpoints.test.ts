/** When a run makes checkpoints, what they say, and what it says of the changes between them. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore, StoreError, type AgentEvent, type EngineOptions, type JsonObject, type ObjectStore,
} from 'runwright/agent'
import { bash, follow, payloads, type Said } from '../../helpers/engine.js'
import type { Files } from '../../helpers/files.js'
import { World, type Run } from '../../helpers/world.js'

const FILES = { 'a.txt': 'one\ntwo\nthree\n' }
const GOAL = 'shell: test -f goal.txt'

const kinds = (events: readonly AgentEvent[]): string[] => events.map(({ kind }) => kind)

/** Plays the turns as one run each of `request`, in a folder with `a.txt`. */
async function play(
  t: TestContext,
  turns: readonly Said[],
  request: JsonObject = {},
  engine: Partial<EngineOptions> = {},
): Promise<Run & { readonly world: World }> {
  const world = new World(t, { files: FILES, turns, engine })
  return { world, ...(await world.run({ goal: GOAL, max_iterations: 1, ...request })) }
}

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

test('the first checkpoint is in the log before the first call that may write', async (t) => {
  const { events } = await play(t, [bash('echo x > goal.txt')])
  const made = kinds(events).indexOf('checkpoint')
  const started = kinds(events).indexOf('tool_started')
  assert.ok(made > 0 && made < started, kinds(events).join(' '))
  const [first, second] = payloads(events, 'checkpoint')
  assert.equal(first?.reason, 'start')
  assert.equal(first?.files, 1)
  assert.equal(first?.bytes, 14)
  assert.equal(second?.reason, 'iteration')
  assert.equal(second?.files, 2)
  assert.equal(payloads(events, 'checkpoint').length, 2)
})

test('reads do not wait for the first checkpoint', async (t) => {
  let release: () => void = () => undefined
  const blocked = new Promise<void>((resolve) => (release = resolve))
  const store = new MemoryStore()
  await store.open()
  const objects: ObjectStore = {
    ...boundTo(store.objects!),
    put: async (all) => {
      await blocked
      await store.objects!.put(all)
    },
  }
  const seen: string[] = []
  const world = new World(t, {
    files: FILES,
    engine: { objects },
    turns: ({ messages }, call) => {
      seen.push(`call ${call}`)
      if (call === 0) return { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] }
      if (call > 1) return {}
      // The file has been read although nothing can be stored yet.
      assert.ok(messages.some((message) => message.role === 'tool'))
      release()
      return bash('echo x > goal.txt')
    },
  })
  const { events } = await world.run({ goal: GOAL, max_iterations: 1 })
  assert.deepEqual(seen.slice(0, 2), ['call 0', 'call 1'])
  assert.equal(payloads(events, 'run_end')[0]?.status, 'achieved')
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

test('checkpoints follow one another as a chain of records', async (t) => {
  const turns = [bash('echo 1 > b.txt'), {}, bash('echo 2 > b.txt'), {}]
  const { runId, world } = await play(t, turns, { max_iterations: 2 })
  const records = await world.store.read(runId, 0, 1_000)
  const made = records.filter((record) => record.kind === 'checkpoint')
  const previous = made.map((record) => (record.kind === 'checkpoint' ? record.private : null))
  assert.deepEqual(
    previous.map((hidden) => hidden?.previous ?? null),
    [null, ...made.map(({ seq }) => seq)].slice(0, made.length),
  )
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

test('what a command did before it was stopped is in the last checkpoint', async (t) => {
  const world = new World(t, { turns: [bash('echo half > half.txt; sleep 60')] })
  const engine = await world.open()
  const { runId } = await world.run({ goal: 'shell: false' }, ({ kind }) => kind === 'tool_started')
  while (!world.has('half.txt')) await new Promise((done) => setImmediate(done))
  await engine.abort(runId)
  const events = await follow(engine, runId)
  const last = payloads(events, 'checkpoint').at(-1)
  assert.equal(last?.reason, 'end')
  assert.equal(last?.files, 1)
  assert.equal(payloads(events, 'run_end')[0]?.changes?.files, 1)
})

for (const [name, request, options] of [
  ['request', { checkpoints: 'off' }, {}],
  ['host', {}, { checkpoints: 'off' }],
] as const) {
  test(`a ${name} can switch checkpoints off`, async (t) => {
    const { events } = await play(t, [bash('echo x > goal.txt')], request, options)
    assert.deepEqual(payloads(events, 'checkpoint'), [])
    const [end] = payloads(events, 'run_end')
    assert.equal(end?.status, 'achieved')
    assert.equal(end?.changes, undefined)
  })
}

test('a run goes on without checkpoints when they cannot be stored at all', async (t) => {
  const store = new MemoryStore()
  const objects: ObjectStore = {
    ...boundTo(store.objects!),
    put: () => Promise.reject(new Error('no such bucket')),
  }
  const { events } = await play(t, [bash('echo x > goal.txt')], {}, { objects })
  assert.deepEqual(payloads(events, 'checkpoint'), [])
  const warnings = payloads(events, 'log').filter(({ level }) => level === 'warn')
  assert.match(warnings[0]?.message ?? '', /no checkpoint was made: no such bucket/)
  assert.equal(payloads(events, 'run_end')[0]?.status, 'achieved')
})

test('a run waits while the store of contents is unavailable', async (t) => {
  const store = new MemoryStore()
  let refusals = 2
  const objects: ObjectStore = {
    ...boundTo(store.objects!),
    put: async (all) => {
      if (refusals-- > 0) throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'try later')
      await store.objects!.put(all)
    },
  }
  const { events } = await play(t, [bash('echo x > goal.txt')], {}, { objects })
  assert.equal(payloads(events, 'checkpoint').length, 2)
  assert.equal(payloads(events, 'run_end')[0]?.status, 'achieved')
})

test('a goal that is met already needs no checkpoint', async (t) => {
  const { events } = await play(t, [], { goal: 'shell: true' })
  assert.deepEqual(payloads(events, 'checkpoint'), [])
})

test('the folder itself is only read', async (t) => {
  const { world } = await play(t, [bash('true')])
  assert.equal(world.read('a.txt'), 'one\ntwo\nthree\n')
})

function boundTo(objects: ObjectStore): ObjectStore {
  return {
    put: (all) => objects.put(all),
    get: (hash) => objects.get(hash),
    has: (hashes) => objects.has(hashes),
    list: (after, limit) => objects.list(after, limit),
    delete: (hashes, unusedMs) => objects.delete(hashes, unusedMs),
  }
}
