import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  evaluate,
  ScriptedModel,
  type EvaluationAttempt,
  type EvaluationOptions,
} from 'runwright/agent/testing'
import { scratch } from '../../../helpers/engine.js'
import { goal, scripts, open, task, outcomes } from './evaluated-tasks.js'

test('an evaluation needs no more than tasks, models and attempts', async (t) => {
  const folder = scratch(t)
  writeFileSync(join(folder, 'done'), '')
  process.env['OLLAMA_HOST'] = '127.0.0.1:9'
  t.after(() => delete process.env['OLLAMA_HOST'])
  // The goal is met from the start: no model is called.
  const tasks = [{ ...task, folder }]
  const report = await evaluate({ tasks, models: ['ollama:any'], attempts: 2 })
  const counts = report.cells.map(({ achieved, failed, errors }) => [achieved, failed, errors])
  assert.deepEqual(counts, [[2, 0, 0]])
})

test('each model attempts each task in a fresh copy of its folder', async (t) => {
  const folder = scratch(t)
  mkdirSync(join(folder, 'deep'))
  writeFileSync(join(folder, 'deep/part'), 'content')
  symlinkSync('deep/part', join(folder, 'link'))
  let where = ''
  const report = await evaluate({
    tasks: [
      { name: 'copied', folder, request: { goal: 'shell: grep content link && test -f done' } },
      { ...task, name: 'empty' },
    ],
    models: ['script:good', 'script:idle'],
    attempts: 2,
    engine: (copies) => {
      where = copies
      return open()(copies)
    },
  })
  assert.deepEqual(
    report.cells.map(({ task, model, achieved, failed }) => [task, model, achieved, failed]),
    [
      ['copied', 'script:good', 2, 0],
      ['copied', 'script:idle', 0, 2],
      ['empty', 'script:good', 2, 0],
      ['empty', 'script:idle', 0, 2],
    ],
  )
  assert.equal(report.complete, true)
  assert.deepEqual(report.pass_at, [1, 2])
  const [first] = report.cells
  assert.deepEqual(first?.attempts.map(({ attempt }) => attempt), [1, 2])
  assert.deepEqual(first?.mean?.tokens, 15)
  assert.ok(Math.abs((first?.mean?.cost_usd ?? 0) - 20e-6) < 1e-12)
  assert.deepEqual(first?.assurance, [{ by: 'exit_code', sealed: false, runs: 2 }])
  assert.equal(first?.pass[0]?.estimate, 1)
  assert.equal(report.totals[0]?.spent.tokens, 60)
  assert.deepEqual(readdirSync(folder).sort(), ['deep', 'link'])
  assert.equal(readFileSync(join(folder, 'deep/part'), 'utf8'), 'content')
  assert.equal(existsSync(where), false)
  // It is JSON, and stays the same as such.
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report)
})

test('the report does not depend on which attempt ends first', async () => {
  const heard: EvaluationAttempt[] = []
  const options: EvaluationOptions = {
    tasks: [task, { ...task, name: 'again' }], models: ['script:idle', 'script:good'], attempts: 2,
    engine: open(),
  }
  const parallel = await evaluate({
    ...options, concurrency: 8, onAttempt: (attempt) => heard.push(attempt),
  })
  const alone = await evaluate({ ...options, concurrency: 1 })
  const all = (report: typeof alone): string[] =>
    outcomes(report.cells.flatMap(({ attempts }) => attempts))
  assert.deepEqual(all(parallel), all(alone))
  assert.deepEqual(outcomes(heard).sort(), all(alone).sort())
})

test('only so many attempts run at one time, and first ones come before second ones', async () => {
  let running = 0
  let most = 0
  const order: number[] = []
  const watched = new ScriptedModel([
    async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      return { text: 'Done.' }
    },
  ], { name: 'script:watched' })
  await evaluate({
    tasks: [task, { ...task, name: 'b' }, { ...task, name: 'c' }], models: ['script:watched'],
    attempts: 3, concurrency: 2, onAttempt: ({ attempt }) => order.push(attempt),
    engine: open({
      providers: [scripts({ watched: () => watched })], defaultModel: 'script:watched',
    }),
  })
  assert.equal(order.length, 9)
  assert.ok(most <= 2, String(most))
  // Two at a time: an attempt can be overtaken by one.
  assert.ok(order.every((attempt, i) => Math.abs(attempt - (1 + Math.floor(i / 3))) <= 1))
})

test('what breaks is told apart from what a model did not achieve', async (t) => {
  const report = await evaluate({
    tasks: [
      task,
      { name: 'no folder', folder: join(scratch(t), 'none'), request: { goal } },
      { name: 'no goal', request: { gaol: goal } },
      { name: 'no check', request: { goal: 'be nice' } },
      { name: 'gate', request: { goal, hitl_enabled: true } },
    ],
    models: ['script:idle', 'script:broken'],
    engine: open(),
  })
  const found = Object.fromEntries(
    report.cells.flatMap(({ attempts }) => attempts)
      .map(({ task, model, outcome, reason }) => [`${task}, ${model}`, [outcome, reason] as const]),
  )
  for (const [name, outcome, reason] of [
    ['done, script:idle', 'failed', /exit|test -f/],
    ['done, script:broken', 'error', /no such key/],
    ['no folder, script:idle', 'error', /ENOENT/],
    ['no goal, script:idle', 'error', /gaol/],
    ['no check, script:idle', 'error', /verif|check/],
    ['gate, script:idle', 'error', /waits for a human/],
  ] as const) {
    assert.equal(found[name]?.[0], outcome, name)
    assert.match(found[name]?.[1] ?? '', reason)
  }
  assert.equal(report.complete, true)
  assert.equal(report.totals[0]?.errors, 4)
  assert.equal(report.cells[0]?.pass[0]?.estimate, 0)
  // Only `done` counts, which is not all.
  assert.equal(report.totals[0]?.pass[0], null)
})
