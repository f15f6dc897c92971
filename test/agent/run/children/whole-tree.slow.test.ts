import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore, MemoryStore, type JsonObject } from 'runwright/agent'
import { untilAborted } from '../../../helpers/abort.js'
import { follow, payloads, runToEnd, scratch } from '../../../helpers/engine.js'
import { assertInvariants } from '../../../helpers/invariants.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { openFamily, writes, type Brain } from './support.js'

const GOAL = 'shell: grep -q good answer.txt'

/** Never answers; ends when it is aborted. */
const silent: Brain = ({ signal }) =>
  untilAborted(signal)

test('the smallest change wins, then the fewest tokens', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    long: writes('answer.txt', 'good\nand\nlong\n'),
    costly: writes('answer.txt', 'good\n', [50, 50]),
    cheap: writes('answer.txt', 'good\n', [5, 5]),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const models = ['test:long', 'test:costly', 'test:cheap']
  const attempts = { count: 3, models, choose: 'smallest' }
  const { details, events } = await runToEnd(engine, { goal: GOAL, attempts })
  assert.equal(details.attempts?.chosen, 3)
  assertInvariants(events)
  assert.equal(details.usage.input_tokens, 2 + 100 + 10)
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n' })
})

test('when one attempt wins, the others are ended', async (t) => {
  const { engine, cwd } = await openFamily(t, { silent, good: writes('answer.txt', 'good\n') })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const attempts = { count: 3, models: ['test:silent', 'test:good', 'test:silent'] }
  const { details } = await runToEnd(engine, { goal: GOAL, attempts })
  assert.deepEqual(details.attempts?.runs.map(({ status }) => status), [
    'aborted', 'achieved', 'aborted',
  ])
  assert.equal(details.attempts?.chosen, 2)
  const why = 'aborted: another attempt was the first to achieve the goal'
  assert.equal(details.attempts?.runs[0]?.reason, why)
  const { end_reason, run_id } = await engine.get(details.attempts?.runs[0]?.run_id ?? '')
  assert.equal(end_reason, 'cancelled')
  assert.equal(payloads(await follow(engine, run_id), 'run_end')[0]?.reason, why)
})

test('an abort of a run ends all that it has started, and then the run', async (t) => {
  const { engine, cwd } = await openFamily(t, { silent })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await engine.create({ goal: GOAL, attempts: { count: 3 } })
  let started = 0
  await follow(engine, details.run_id, ({ kind }) => {
    if (kind === 'attempt_started') started += 1
    return started === 3
  })
  await engine.abort(details.run_id)
  const events = await follow(engine, details.run_id)
  const [end] = payloads(events, 'run_end')
  assert.deepEqual([end?.end_reason, end?.reason], ['cancelled', 'aborted on request'])
  const why = 'aborted: the run that started it was aborted'
  assert.deepEqual(
    payloads(events, 'attempt_ended').map(({ status, reason }) => [status, reason]),
    [1, 2, 3].map(() => ['aborted', why]),
  )
  const { runs } = await engine.list()
  assert.ok(runs.every(({ status }) => status === 'aborted'))
})

test('the tokens of all attempts count towards the budget of their run', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    busy: (_, turn) => ({
      calls: [{ tool: 'write_file', args: { path: 'n', content: `${turn}\n` } }],
      tokens: [10, 0],
    }),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, attempts: { count: 2 }, max_total_tokens: 100,
  })
  assert.deepEqual([details.status, details.end_reason], ['failed', 'token_budget'])
  const used = details.final_state.total_tokens
  assert.ok(used >= 100 && used < 200, `${used} tokens`)
})

test('what runs of all levels use counts at once, before any of them has ended', async (t) => {
  const work: Brain = (_, turn) => ({
    calls: [{ tool: 'write_file', args: { path: 'n', content: `${turn}\n` } }],
    tokens: [10, 0],
  })
  const asks = (goal: string): Brain => () => ({
    calls: [1, 2].map((part) => ({
      tool: 'delegate', args: { goal: `${goal} ${part}`, check: 'false' },
    })),
  })
  const { engine, cwd } = await openFamily(t, {
    m: (request, turn) => {
      const text = JSON.stringify(request.messages[0])
      const brain = text.includes('leaf') ? work : text.includes('node') ? asks('leaf') : asks('node')
      return brain(request, turn)
    },
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, delegation: { depth: 2, children: 2 }, max_total_tokens: 200,
  })
  assert.deepEqual([details.status, details.end_reason], ['failed', 'token_budget'])
  const used = details.final_state.total_tokens
  assert.ok(used >= 200 && used < 300, `${used} tokens`)
})

test('changes that conflict with the folder stay pending, and the conflict is named', async (t) => {
  let folder = ''
  const { engine, cwd } = await openFamily(t, {
    good: (request, turn) => {
      if (turn === 0) writeFileSync(join(folder, 'answer.txt'), 'of the user\n')
      return writes('answer.txt', 'good\n')(request, turn)
    },
  })
  folder = cwd
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details, events } = await runToEnd(engine, { goal: GOAL, attempts: { count: 1 } })
  assert.deepEqual([details.status, details.changes], ['achieved', 'pending'])
  assert.ok(payloads(events, 'log').some(({ message }) => message.includes('answer.txt')))
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'of the user\n' })
  await assert.rejects(engine.workspaces.apply(details.run_id, {}), /answer.txt/)
  await engine.workspaces.apply(details.run_id, { force: true })
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n' })
})

test('with apply: manual, the changes of the winner, or of a loser, are applied by hand', async (t) => {
  const { engine, cwd } = await openFamily(t, {
    a: writes('answer.txt', 'good a\n'), b: writes('other.txt', 'of b\n'),
  })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, max_iterations: 1, apply: 'manual',
    attempts: { count: 2, models: ['test:a', 'test:b'], choose: 'smallest' },
  })
  assert.deepEqual([details.status, details.changes], ['achieved', 'pending'])
  const { changes } = await engine.workspaces.changes(details.run_id)
  assert.deepEqual(changes.map(({ path, status }) => [path, status]), [['answer.txt', 'modified']])
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'none\n' })
  await engine.workspaces.apply(details.run_id, {})
  const loser = details.attempts?.runs[1]?.run_id ?? ''
  await engine.workspaces.apply(loser, {})
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good a\n', 'other.txt': 'of b\n' })
  assert.equal((await engine.get(details.run_id)).changes, 'applied')
})

test('a fork goes on by itself with the files of the winner; a retry attempts anew', async (t) => {
  const { engine, cwd } = await openFamily(t, { a: writes('answer.txt', 'good\n') })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, apply: 'manual', attempts: { count: 2 },
  })
  const fork = await engine.fork(details.run_id, {})
  await follow(engine, fork.details.run_id)
  const forked = await engine.get(fork.details.run_id)
  assert.deepEqual([forked.status, forked.role, forked.attempts], ['achieved', 'root', null])
  const again = await engine.retry(details.run_id)
  await follow(engine, again.run_id)
  const retried = await engine.get(again.run_id)
  assert.deepEqual([retried.status, retried.role], ['achieved', 'root'])
  assert.equal(retried.attempts?.count, 2)
  assert.equal(retried.parent_run_id, details.run_id)
})

test('a service that is closed goes on with its trees when it starts again', async (t) => {
  const directory = scratch(t)
  const cwd = scratch(t)
  const copies = scratch(t)
  let answers = false
  const model: Brain = (request, turn) =>
    answers ? writes('answer.txt', 'good\n')(request, turn) : silent(request, turn)
  const given = { cwd, copies }
  const first = await openFamily(t, { model }, { ...given, store: new FileStore({ directory }) })
  writeFiles(cwd, { 'answer.txt': 'none\n' })
  const { details } = await first.engine.create({ goal: GOAL, attempts: { count: 2 } })
  let started = 0
  await follow(first.engine, details.run_id, ({ kind }) => {
    if (kind === 'attempt_started') started += 1
    return started === 2
  })
  await first.engine.close()
  answers = true
  const next = await openFamily(t, { model }, { ...given, store: new FileStore({ directory }) })
  const events = await follow(next.engine, details.run_id)
  assertInvariants(events)
  assert.equal(payloads(events, 'run_end')[0]?.status, 'achieved')
  assert.equal(payloads(events, 'attempt_started').length, 2)
  assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n' })
})

const REFUSED: readonly (readonly [JsonObject, RegExp])[] = [
  [{ attempts: { count: 0 } }, /attempts.count/],
  [{ attempts: { count: 17 } }, /attempts.count/],
  [{ attempts: { count: 2, choose: 'best' } }, /attempts.choose/],
  [{ attempts: { count: 2, models: [] } }, /attempts.models/],
  [{ attempts: { count: 2, models: ['nobody:x'] } }, /attempts.models.0/],
  [{ attempts: {} }, /attempts/],
  [{ attempts: { count: 2 }, workspace: 'in_place' }, /workspace/],
  [{ attempts: { count: 2 }, checkpoints: 'off' }, /checkpoints/],
  [{ delegation: { depth: 4 } }, /delegation.depth/],
  [{ delegation: { depth: 2 } }, /delegation.depth: must be at most 1 here/],
  [{ delegation: { children: 3 } }, /delegation.children: must be at most 2 here/],
  [{ delegation: { other: 1 } }, /delegation/],
]

test('what cannot be done is refused by name', async (t) => {
  const limits = { delegation: { depth: 1, children: 2 } }
  const { engine } = await openFamily(t, { a: writes('x', 'x') }, limits)
  for (const [given, named] of REFUSED)
    await assert.rejects(engine.create({ goal: GOAL, ...given }), named, JSON.stringify(given))
  const { engine: strict } = await openFamily(
    t, { a: writes('x', 'x') }, { delegation: undefined, store: new MemoryStore() },
  )
  const asked = strict.create({ goal: GOAL, delegation: {} })
  await assert.rejects(asked, /delegation: is not allowed here/)
})
