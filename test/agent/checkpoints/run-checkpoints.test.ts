/** When a run makes checkpoints, what they say, and what it says of the changes between them. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  MemoryStore,
  StoreError,
  type AgentEvent,
  type EventKind,
  type EventPayloads,
  type JsonObject,
  type ObjectStore,
  type RunRecord,
} from 'runwright/agent'
import { follow, openEngine, scratch, testProvider, type Said } from '../../helpers/engine.js'

type Payload<K extends EventKind> = EventPayloads[K]

function payloads<K extends EventKind>(events: readonly AgentEvent[], kind: K): Payload<K>[] {
  return events.filter((event) => event.kind === kind).map((event) => event.payload as Payload<K>)
}

const kinds = (events: readonly AgentEvent[]): string[] => events.map(({ kind }) => kind)

/** Calls of `bash`, one for each command. */
const bash = (...commands: readonly string[]): Said => ({
  calls: commands.map((command) => ({ tool: 'bash', args: { command } })),
})

interface Run {
  readonly events: AgentEvent[]
  readonly cwd: string
  readonly runId: string
  readonly store: MemoryStore
}

/** Plays the turns as one run each of `request`, in a folder with `a.txt`. */
async function play(
  t: Parameters<typeof openEngine>[0],
  turns: readonly Said[],
  request: JsonObject = {},
  options: Parameters<typeof openEngine>[1] = {},
): Promise<Run> {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'a.txt'), 'one\ntwo\nthree\n')
  const store = new MemoryStore()
  const provider = testProvider((_, call) => turns[call] ?? { text: 'done' })
  const { engine } = await openEngine(t, {
    cwd, store, providers: [provider], checkpoints: 'auto', ...options,
  })
  const all = { goal: 'shell: test -f goal.txt', max_iterations: 1, ...request }
  const { details } = await engine.create(all)
  const events = await follow(engine, details.run_id)
  return { events, cwd, runId: details.run_id, store }
}

test('checkpoints of an isolated run hold the files of its copy', async (t) => {
  const { events } = await play(
    t,
    [bash('echo x > goal.txt')],
    { workspace: 'isolated' },
    { workspaceFolder: scratch(t) },
  )
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
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'a.txt'), 'one\n')
  const seen: string[] = []
  const provider = testProvider(({ messages }, call) => {
    seen.push(`call ${call}`)
    if (call === 0) return { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] }
    if (call > 1) return {}
    // The file has been read although nothing can be stored yet.
    assert.ok(messages.some((message) => message.role === 'tool'))
    release()
    return bash('echo x > goal.txt')
  })
  const { engine } = await openEngine(t, {
    cwd, store: new MemoryStore(), objects, providers: [provider], checkpoints: 'auto',
  })
  const { details } = await engine.create({ goal: 'shell: test -f goal.txt', max_iterations: 1 })
  const events = await follow(engine, details.run_id)
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
  const { runId, store } = await play(t, turns, { max_iterations: 2 })
  await store.open().catch(() => undefined)
  const reopened = store as unknown as { read: MemoryStore['read'] }
  const records = await reopened.read(runId, 0, 1_000).catch(() => [] as RunRecord[])
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
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'a.txt'), 'one\ntwo\nthree\n')
  const turns = [back, {}, bash('sed -i s/TWO/two/ a.txt'), {}]
  const provider = testProvider((_, call) => turns[call] ?? {})
  const { engine } = await openEngine(t, { cwd, providers: [provider], checkpoints: 'auto' })
  const { details } = await engine.create({
    goal: 'shell: false', max_iterations: 3, hitl_enabled: true,
  })
  const summaries: string[] = []
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(details.run_id)) {
    for (const { json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      events.push(event)
      if (event.kind !== 'human_check_required') continue
      summaries.push(event.payload.summary)
      void engine.resume(details.run_id, { decision: summaries.length < 3 ? 'approve' : 'abort' })
    }
  }
  assert.match(summaries[0] ?? '', /Files changed since the last gate: a\.txt \(\+1 -1\)\n/)
  assert.match(summaries[1] ?? '', /Files changed since the last gate: a\.txt \(\+1 -1\)\n/)
  const [end] = payloads(events, 'run_end')
  assert.deepEqual(end?.changes, { files: 0, additions: 0, deletions: 0 })
})

test('a gate for a single call shows what changed until then', async (t) => {
  const turns = [bash('echo 1 > b.txt'), bash('echo 2 > c.txt')]
  const cwd = scratch(t)
  const provider = testProvider((_, call) => turns[call] ?? {})
  const { engine } = await openEngine(t, { cwd, providers: [provider], checkpoints: 'auto' })
  const { details } = await engine.create({
    goal: 'shell: false', max_iterations: 1, approval: 'writes',
  })
  const summaries: string[] = []
  for await (const batch of await engine.subscribe(details.run_id)) {
    for (const { json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      if (event.kind !== 'human_check_required') continue
      summaries.push(event.payload.summary)
      void engine.resume(details.run_id, { decision: 'approve' })
    }
  }
  assert.match(summaries[0] ?? '', /No file changed since the last gate/)
  assert.match(summaries[1] ?? '', /since the last gate: b\.txt \(\+1\)/)
})

test('what a command did before it was stopped is in the last checkpoint', async (t) => {
  const cwd = scratch(t)
  const provider = testProvider(() => bash('echo half > half.txt; sleep 60'))
  const { engine } = await openEngine(t, { cwd, providers: [provider], checkpoints: 'auto' })
  const { details } = await engine.create({ goal: 'shell: false' })
  await follow(engine, details.run_id, ({ kind }) => kind === 'tool_started')
  while (!existsSync(join(cwd, 'half.txt'))) await new Promise((done) => setImmediate(done))
  await engine.abort(details.run_id)
  const events = await follow(engine, details.run_id)
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
  const { cwd } = await play(t, [bash('true')])
  assert.equal(readFileSync(join(cwd, 'a.txt'), 'utf8'), 'one\ntwo\nthree\n')
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
