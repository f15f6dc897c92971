import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { MemoryStore, type RunRecord } from 'runwright/agent'
import { follow, payloads, runToEnd, type Said } from '../../../helpers/engine.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { openFamily, writes } from './support.js'

/** A store in whose folder something happens when the first attempt is named. */
class ChangedMeanwhile extends MemoryStore {
  readonly #change: () => void
  #isDone = false

  constructor(change: () => void) {
    super()
    this.#change = change
  }

  override async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    if (!this.#isDone && records.some(({ kind }) => kind === 'attempt_started')) {
      this.#isDone = true
      this.#change()
    }
    await super.append(runId, records)
  }
}

const GOAL = 'shell: grep -q good answer.txt'

test('the first attempt that achieves the goal wins, and its changes are applied', async (t) => {
  const { engine, cwd, copies } = await openFamily(t, {
    bad: writes('answer.txt', 'bad\n'),
    good: writes('answer.txt', 'good\n'),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 2, models: ['test:bad', 'test:good'], choose: 'first' }
  const { events, details } = await runToEnd(engine, { goal: GOAL, attempts, max_iterations: 2 })
  assert.deepEqual(events.filter(({ kind }) => kind === 'error'), [])
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n' })
  assert.equal(details.changes, 'applied')
  assert.equal(details.attempts?.chosen, 2)
  assert.deepEqual(payloads(events, 'attempt_started').map((one) => one.model_name), [
    'test:bad', 'test:good',
  ])
  assert.deepEqual(payloads(events, 'attempt_chosen').map(({ attempt }) => attempt), [2])
  assert.equal(payloads(events, 'attempt_ended').length, 2)
  assert.equal(payloads(events, 'model_turn').length, 0)
  await engine.close()
  assert.deepEqual(readdirSync(copies), [])
})

test('an attempt begins with the checkpoint of its run, stored once, whatever is left out', async (t) => {
  const { engine, cwd } = await openFamily(t, { good: writes('answer.txt', 'good\n') })
  writeFiles(cwd, { 'answer.txt': 'none\n', '.env': 'TOKEN=1\n', 'node_modules/a/index.js': '' })
  const { details } = await runToEnd(engine, { goal: GOAL, attempts: { count: 1 } })
  const child = details.attempts?.runs[0]?.run_id ?? ''
  const [own] = payloads(await follow(engine, details.run_id), 'checkpoint')
  const events = await follow(engine, child)
  const [start] = payloads(events, 'checkpoint')
  assert.equal(start?.reason, 'start')
  assert.deepEqual({ ...start, new_bytes: 0 }, { ...own, new_bytes: 0 })
  assert.equal(start?.new_bytes, 0)
  const told = payloads(events, 'log').map(({ message }) => message)
  assert.deepEqual(told, ['As in the folder now, because not stored: .env.'])
})

test('an attempt has the files of the checkpoint, whatever happens to the folder meanwhile', async (t) => {
  const seen: Record<string, string>[] = []
  const { engine, cwd } = await openFamily(
    t,
    {
      good: (request, turn) => {
        seen.push(filesIn(request.run.cwd))
        return writes('answer.txt', 'good\n')(request, turn) as Said
      },
    },
    { store: new ChangedMeanwhile(() => writeFiles(cwd, { 'answer.txt': 'late\n', more: '' })) },
  )
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, { goal: GOAL, attempts: { count: 1 } })
  assert.equal(details.status, 'achieved')
  assert.deepEqual(seen[0], { 'answer.txt': 'none\n' })
  const child = details.attempts?.runs[0]?.run_id ?? ''
  const checkpoints = payloads(await follow(engine, child), 'checkpoint')
  assert.deepEqual(checkpoints.map(({ reason }) => reason), ['start', 'iteration'])
})

test('attempts that do not achieve the goal fail their run, with every reason', async (t) => {
  const { engine, cwd } = await openFamily(t, { bad: writes('answer.txt', 'bad\n') })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 3, choose: 'smallest' }
  const { events, details } = await runToEnd(engine, { goal: GOAL, attempts, max_iterations: 1 })
  assert.equal(details.status, 'failed')
  assert.equal(details.end_reason, 'attempts_failed')
  const [end] = payloads(events, 'run_end')
  for (const n of [1, 2, 3]) assert.match(end?.reason ?? '', new RegExp(`attempt ${n} failed: `))
  assert.equal(details.final_state.goal_reason, end?.reason)
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'none\n' })
  assert.equal(details.usage.model_calls, payloads(events, 'attempt_ended').reduce(
    (sum, { usage }) => sum + usage.model_calls, 0))
})

test('the attempt that came nearest is named, and its changes can be applied by hand', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    one: writes('digits.js', 'module.exports = [1, 0, 0]\n'),
    two: writes('digits.js', 'module.exports = [1, 2, 0]\n'),
    none: writes('digits.js', 'module.exports = [0, 0, 0]\n'),
  })
  const tests = `
    const test = require('node:test')
    const digits = require('./digits.js')
    for (const n of [1, 2, 3]) test('digit ' + n, () => { if (digits[n - 1] !== n) throw new Error('no') })
  `
  writeFiles(cwd, { 'digits.js': 'module.exports = []\n', 'digits.test.js': tests })
  const { details } = await runToEnd(engine, {
    goal: 'shell: node --test digits.test.js',
    max_iterations: 1,
    attempts: { count: 3, models: ['test:one', 'test:two', 'test:none'] },
  })
  assert.equal(details.status, 'failed')
  const second = details.attempts?.runs[1]?.run_id ?? ''
  const named =
    `. The nearest is attempt 2 with 2 of 3 tests passing; ` +
    `its changes can be applied by hand, as those of run ${second}`
  assert.ok(details.final_state.goal_reason.endsWith(named), details.final_state.goal_reason)
  await engine.workspaces.apply(second, {})
  assert.equal(filesIn(cwd)['digits.js'], 'module.exports = [1, 2, 0]\n')
})

test('an attempt that changes the tests is not the nearest, however many pass', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    cheat: writes('digits.test.js', "require('node:test')('digit 1', () => {})\n"),
    one: writes('digits.js', 'module.exports = [1, 0]\n'),
  })
  const tests = `
    const test = require('node:test')
    const digits = require('./digits.js')
    for (const n of [1, 2]) test('digit ' + n, () => { if (digits[n - 1] !== n) throw new Error('no') })
  `
  writeFiles(cwd, { 'digits.js': 'module.exports = []\n', 'digits.test.js': tests })
  const request = { goal: 'shell: node --test digits.test.js', max_iterations: 1 }
  const models = ['test:cheat', 'test:one']
  const { details } = await runToEnd(engine, { ...request, attempts: { count: 2, models } })
  const { goal_reason } = details.final_state
  assert.match(goal_reason, /attempt 1 failed: .*tests changed: digits\.test\.js was modified/)
  assert.match(goal_reason, /The nearest is attempt 2 with 1 of 2 tests passing/)
})

test('a binary file is a larger change than any text', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    binary: (_, turn) =>
      turn === 0
        ? { calls: [{ tool: 'bash', args: { command: "printf 'good\\000\\n' > answer.txt" } }] }
        : { text: 'done' },
    text: writes('answer.txt', `good\n${'more\n'.repeat(500)}`),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 2, models: ['test:binary', 'test:text'], choose: 'smallest' }
  const goal = 'shell: grep -aq good answer.txt'
  const { details, events } = await runToEnd(engine, { goal, attempts, max_iterations: 1 })
  assert.equal(details.attempts?.chosen, 2)
  assert.deepEqual(details.attempts?.runs.map(({ changes }) => changes), [
    { files: 1, additions: 0, deletions: 0, uncounted: 1 },
    { files: 1, additions: 501, deletions: 1 },
  ])
  assert.match(payloads(events, 'attempt_chosen')[0]?.why ?? '', /1 files, \+501 -1$/)
})

test('the largest number of attempts needs no more listeners than Node expects', async (t) => {
  const warnings: string[] = []
  const note = ({ message }: Error): unknown => warnings.push(message)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  const { engine, cwd } = await openFamily(t, { good: writes('answer.txt', 'good\n') })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 16, choose: 'smallest' }
  const { details } = await runToEnd(engine, { goal: GOAL, attempts, max_iterations: 1 })
  assert.equal(details.status, 'achieved')
  assert.deepEqual(warnings, [])
})

test('while another run works in the folder, the run says for what it waits', async (t) => {
  let leave = (): void => undefined
  const left = new Promise<void>((resolve) => (leave = resolve))
  t.after(() => leave())
  const { engine, cwd } = await openFamily(t, {
    busy: () => left.then(() => ({ text: 'done' })),
    good: writes('answer.txt', 'good\n'),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const busy = { goal: 'shell: false', model_name: 'test:busy', max_iterations: 1 }
  const other = await engine.create({ ...busy, workspace: 'in_place' })
  await follow(engine, other.details.run_id, ({ kind }) => kind === 'run_started')
  const model_name = 'test:good'
  const { details } = await engine.create({ goal: GOAL, model_name, attempts: { count: 1 } })
  await follow(engine, details.run_id, ({ kind, payload }) =>
    kind === 'log' && /waiting to apply the changes/.test(payload.message))
  const waiting = await engine.get(details.run_id)
  assert.deepEqual([waiting.status, waiting.attempts?.chosen], ['running', 1])
  leave()
  await follow(engine, other.details.run_id)
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).changes, 'applied')
})

test('the changes of a fork wait, though those of the attempts were applied by default', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    good: ({ messages }) => {
      const last = messages.at(-1)
      if (last?.role !== 'user') return { text: 'done' }
      const content = last.text.includes('more') ? 'good more\n' : 'good\n'
      return { calls: [{ tool: 'write_file', args: { path: 'answer.txt', content } }] }
    },
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const request = { goal: GOAL, attempts: { count: 1 }, max_iterations: 1 }
  const { details } = await runToEnd(engine, request)
  assert.equal(details.changes, 'applied')
  const rules = [[{}, 'pending'], [{ apply: 'on_achieved' }, 'applied']] as const
  for (const [given, changes] of rules) {
    const fork = await engine.fork(details.run_id, { message: 'more', ...given })
    await follow(engine, fork.details.run_id)
    const after = await engine.get(fork.details.run_id)
    assert.deepEqual([after.status, after.changes], ['achieved', changes])
    const expected = changes === 'pending' ? 'good\n' : 'good more\n'
    assert.deepEqual(filesIn(cwd), { 'answer.txt': expected })
  }
})

test('a human chooses among the attempts that achieved the goal', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    a: writes('answer.txt', 'good a\n'),
    b: writes('answer.txt', 'good b\n'),
    c: writes('answer.txt', 'bad\n'),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 3, models: ['test:a', 'test:b', 'test:c'], choose: 'human' }
  const { details } = await engine.create({ goal: GOAL, attempts, max_iterations: 1 })
  const runId = details.run_id
  await follow(engine, runId, ({ kind }) => kind === 'human_check_required')
  const { gate } = await engine.get(runId)
  assert.equal(gate?.kind, 'choice')
  const statuses = gate?.candidates?.map(({ status }) => status)
  assert.deepEqual(statuses, ['achieved', 'achieved', 'failed'])
  await assert.rejects(engine.resume(runId, { decision: 'approve' }), /attempt: must be an attempt/)
  await assert.rejects(engine.resume(runId, { decision: 'approve', attempt: 3 }), /attempt: must/)
  await engine.resume(runId, { decision: 'approve', attempt: 2 })
  await follow(engine, runId)
  const after = await engine.get(runId)
  const { status, changes } = after
  assert.deepEqual([status, changes, after.attempts?.chosen], ['achieved', 'applied', 2])
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good b\n' })
})
