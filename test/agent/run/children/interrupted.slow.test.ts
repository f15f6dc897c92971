/** Trees that are stopped, or whose process dies, at an awkward moment. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineTool, FileStore, MemoryStore, StoreError } from 'runwright/agent'
import { follow, payloads, runToEnd, scratch } from '../../../helpers/engine.js'
import { assertInvariants } from '../../../helpers/invariants.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { openFamily, writes, type Brain } from './support.js'

const NAMES = Array.from({ length: 40 }, (_, i) => `part${i}.txt`)

/** Lets a delegate write many files. */
const boss: Brain = ({ messages }, turn) => {
  const [first] = messages
  if (turn > 0) return { text: 'done' }
  if (first?.role === 'user' && first.text.includes('Goal: write all'))
    return { calls: [{ tool: 'write_all', args: {} }] }
  const args = { goal: 'write all', check: `test -e ${NAMES.at(-1)}` }
  return { calls: [{ tool: 'delegate', args }] }
}

const writeAll = defineTool({
  name: 'write_all', description: 'writes all files',
  parameters: { type: 'object', properties: {} },
  async execute(_, { workspace }) {
    for (const name of NAMES)
      writeFileSync(await workspace.resolve(name, { forWriting: true }), `of ${name}\n`)
    return 'written'
  },
})

test('an abort while changes are brought back leaves all of them, and then the run ends', async (t) => {
  const store = new MemoryStore()
  const { engine, cwd } = await openFamily(t, { boss }, { store, tools: [writeAll] })
  writeFiles(cwd, { 'start.txt': 'start\n' })
  const append = store.append.bind(store)
  store.append = async (runId, records) => {
    await append(runId, records)
    const begins = records.some(
      ({ kind, payload }) =>
        kind === 'files_changing' && 'operation' in payload && payload.operation === 'merge',
    )
    if (begins) void engine.abort(runId)
  }
  const { details } = await engine.create({
    goal: 'shell: false', max_iterations: 1, delegation: { children: 1 },
  })
  const events = await follow(engine, details.run_id)
  assertInvariants(events)
  assert.equal(payloads(events, 'run_end')[0]?.status, 'aborted')
  const kinds = events.map(({ kind }) => kind)
  const steps = ['files_changing', 'files_changed', 'delegate_ended', 'run_end'] as const
  assert.deepEqual(kinds.filter((kind) => (steps as readonly string[]).includes(kind)), steps)
  assert.deepEqual(payloads(events, 'files_changed')[0]?.skipped, [])
  assert.deepEqual(Object.keys(filesIn(cwd)).sort(), [...NAMES, 'start.txt'].sort())
  assert.equal((await store.head(details.run_id))?.operation, null)
})

for (const [what, request, kind] of [
  ['the winner', { attempts: { count: 1, models: ['test:good'] } }, 'attempt_chosen'],
  ['a delegate', { model_name: 'test:lead', delegation: { children: 1 } }, 'delegate_started'],
] as const)
  test(`the changes of ${what} wait for a store that cannot be reached`, async (t) => {
    const store = new MemoryStore()
    let refusals = -1
    const append = store.append.bind(store)
    store.append = async (runId, records) => {
      await append(runId, records)
      if (records.some((record) => record.kind === kind)) refusals = 2
      // Those of the delegate must not wait.
      if (records.some((record) => record.kind === 'run_end') && refusals > 0) refuses = true
    }
    let refuses = kind === 'attempt_chosen'
    const get = store.objects.get.bind(store.objects)
    store.objects.get = async (hash) => {
      if (!refuses || refusals <= 0) return await get(hash)
      refusals -= 1
      throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the store cannot be reached')
    }
    const good = writes('answer.txt', 'good\n')
    const lead: Brain = (asked, turn) => {
      const [first] = asked.messages
      if (first?.role === 'user' && first.text.includes('Goal: part')) return good(asked, turn)
      const args = { goal: 'part', check: 'grep -q good answer.txt' }
      return turn > 0 ? { text: 'done' } : { calls: [{ tool: 'delegate', args }] }
    }
    const { engine, cwd } = await openFamily(t, { good, lead }, { store })
    writeFiles(cwd, { 'answer.txt': 'none\n' })
    const { details, events } = await runToEnd(engine, {
      goal: 'shell: grep -q good answer.txt', max_iterations: 1, ...request,
    })
    assertInvariants(events)
    assert.equal(refusals, 0)
    assert.equal(details.status, 'achieved')
    assert.equal(payloads(events, 'files_changed').length, 1)
    assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n' })
  })

test('a sweep removes the copy of a child whose process died before it could', async (t) => {
  const directory = scratch(t)
  const models = { good: writes('answer.txt', 'good\n'), bad: writes('answer.txt', 'bad\n') }
  const first = await openFamily(t, models, { store: new FileStore({ directory }) })
  const { cwd, copies } = first
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(first.engine, {
    goal: 'shell: grep -q good answer.txt',
    max_iterations: 1,
    attempts: { count: 2, models: ['test:good', 'test:bad'], choose: 'smallest' },
  })
  await first.engine.close()
  const runs = details.attempts?.runs ?? []
  assert.deepEqual(runs.map(({ status }) => status), ['achieved', 'failed'])
  for (const { run_id: owner } of runs) {
    mkdirSync(join(copies, owner, 'work'), { recursive: true })
    const description = { owner, original: cwd, name: 'work', readOnly: [] }
    writeFileSync(join(copies, owner, 'copy.json'), JSON.stringify(description))
  }
  const next = await openFamily(t, models, {
    store: new FileStore({ directory }), cwd, copies,
  })
  // The sweep happens beside other work.
  for (let looks = 0; looks < 10_000 && readdirSync(copies).length > 0; looks++) {
    await next.engine.list()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(readdirSync(copies), [])
})
