/** When a run makes checkpoints, and what they say. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type AgentEvent } from 'runwright/agent'
import { bash, follow, payloads } from '../../helpers/engine.js'
import { withCalls } from '../../helpers/faulty-store.js'
import { World } from '../../helpers/world.js'
import { FILES, GOAL, play } from './play.js'

const kinds = (events: readonly AgentEvent[]): string[] => events.map(({ kind }) => kind)

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
  const objects = withCalls(store.objects, {
    put: async (all) => {
      await blocked
      await store.objects.put(all)
    },
  })
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
  const objects = withCalls(store.objects, {
    put: () => Promise.reject(new Error('no such bucket')),
  })
  const { events } = await play(t, [bash('echo x > goal.txt')], {}, { objects })
  assert.deepEqual(payloads(events, 'checkpoint'), [])
  const warnings = payloads(events, 'log').filter(({ level }) => level === 'warn')
  assert.match(warnings[0]?.message ?? '', /no checkpoint was made: no such bucket/)
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
