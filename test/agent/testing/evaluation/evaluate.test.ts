/** Evaluations with real engines, runs and folders; the models are scripts. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { evaluate, ScriptedModel, type EvaluationEngine } from 'runwright/agent/testing'
import { good, prices, goal, scripts, open, task, outcomes } from './evaluated-tasks.js'
import { untilAborted } from '../../../helpers/abort.js'

test('a model without prices has an unknown cost', async () => {
  const report = await evaluate({ tasks: [task], models: ['script:free'], engine: open() })
  assert.equal(report.cells[0]?.achieved, 1)
  assert.equal(report.cells[0]?.attempts[0]?.cost_usd, null)
  assert.equal(report.totals[0]?.spent.cost_usd, null)
})

test('an abort ends what runs, starts nothing more, and reports what has ended', async () => {
  const controller = new AbortController()
  let where = ''
  const waiting = new ScriptedModel([
    (request) => {
      controller.abort(new Error('enough'))
      return untilAborted(request.signal)
    },
  ], { name: 'script:waiting', prices })
  const report = await evaluate({
    tasks: [task, { ...task, name: 'later' }],
    models: ['script:good', 'script:waiting'],
    concurrency: 1,
    signal: controller.signal,
    engine: (folder) => {
      where = folder
      const quick = new ScriptedModel(good, { name: 'script:good', prices })
      const providers = [scripts({ good: () => quick, waiting: () => waiting })]
      return open({ providers })(folder)
    },
  })
  assert.deepEqual(outcomes(report.cells.flatMap(({ attempts }) => attempts)), [
    'done script:good 1: achieved', 'done script:waiting 1: aborted',
  ])
  assert.equal(report.complete, false)
  assert.equal(report.totals[1]?.aborted, 1)
  assert.equal(existsSync(where), false)
})

test('a signal that has aborted before starts nothing', async () => {
  const report = await evaluate({
    tasks: [task], models: ['script:good'], engine: open(), signal: AbortSignal.abort(),
  })
  assert.deepEqual(report.cells[0]?.attempts, [])
  assert.equal(report.complete, false)
})

/** The parts of an engine, on which a test changes one. */
async function partsOf(folder: string): Promise<EvaluationEngine> {
  const engine = await open()(folder)
  return {
    create: (request) => engine.create(request),
    get: (id) => engine.get(id),
    abort: (id) => engine.abort(id),
    subscribe: (id) => engine.subscribe(id),
    close: () => engine.close(),
  }
}

test('an engine that is closed under an attempt is an error of the attempt', async () => {
  const report = await evaluate({
    tasks: [task], models: ['script:idle'], attempts: 2, concurrency: 1,
    engine: async (folder) => {
      const parts = await partsOf(folder)
      return { ...parts, create: async (request) => {
        const created = await parts.create(request)
        await parts.close()
        return created
      } }
    },
  })
  assert.equal(report.cells[0]?.errors, 2)
  assert.match(report.cells[0]?.attempts[1]?.reason ?? '', /clos/)
})

test('a task without a workspace gets no folder', async () => {
  const requests: unknown[] = []
  await evaluate({
    tasks: [{ name: 'a', request: { goal, workspace: 'none' } }], models: ['script:good'],
    engine: async (folder) => ({
      ...(await partsOf(folder)),
      create: (request) => {
        requests.push(request)
        return Promise.reject(new Error('enough'))
      },
    }),
  })
  assert.deepEqual(requests, [{ goal, workspace: 'none', model_name: 'script:good' }])
})

for (const part of ['engine', 'onAttempt'] as const) {
  test(`what ${part} throws is thrown, and no folder is left`, async () => {
    let where = ''
    let closed = false
    const engine = async (folder: string): Promise<EvaluationEngine> => {
      where = folder
      if (part === 'engine') throw new Error('not today')
      const parts = await partsOf(folder)
      return { ...parts, close: () => {
        closed = true
        return parts.close()
      } }
    }
    const onAttempt = (): void => {
      throw new Error('not today')
    }
    await assert.rejects(
      evaluate({ tasks: [task], models: ['script:good'], attempts: 4, engine, onAttempt }),
      /not today/,
    )
    assert.equal(closed, part === 'onAttempt')
    assert.notEqual(where, '')
    assert.equal(existsSync(where), false)
  })
}

for (const [change, message] of [
  [{ tasks: [] }, /tasks must not be empty/],
  [{ models: [] }, /models must not be empty/],
  [{ models: ['a', 'a'] }, /models has "a" twice/],
  [{ models: [7] }, /models\[0\] must be the name of a model, got 7/],
  [{ tasks: [task, task] }, /tasks has "done" twice/],
  [{ tasks: [{ ...task, name: ' ' }] }, /tasks\[0\].name must say what the task is/],
  [{ tasks: [{ ...task, request: [] }] }, /tasks\[0\].request must be an object/],
  [{ tasks: [{ ...task, request: { goal, cwd: '/' } }] }, /request.cwd must be left out/],
  [{ tasks: [{ ...task, request: { goal, model_name: 'x' } }] }, /request.model_name must be left/],
  [{ tasks: [{ ...task, dir: '/' }] }, /tasks\[0\].dir is not an option/],
  [{ attempts: 0 }, /attempts must be an integer from 1 to 1000, got 0/],
  [{ attempts: 1001 }, /attempts must be an integer from 1 to 1000/],
  [{ attempts: 2, passAt: [3] }, /passAt\[0\] must be an integer from 1 to 2, got 3/],
  [{ concurrency: 65 }, /concurrency must be an integer from 1 to 64/],
  [{ engine: 5 }, /engine must be a function, got 5/],
  [
    { attempts: 1000, models: Array.from({ length: 101 }, (_, i) => `m${i}`) },
    /make more than 100000 runs/,
  ],
] as const) {
  test(`an evaluation with ${JSON.stringify(change).slice(0, 60)} is refused`, async () => {
    const options = { tasks: [task], models: ['script:good'], engine: open(), ...change }
    await assert.rejects(evaluate(options as never), { name: 'TypeError', message })
  })
}
