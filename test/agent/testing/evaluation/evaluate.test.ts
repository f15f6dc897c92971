/** Evaluations with real engines, runs and folders; the models are scripts. */
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
  MemoryStore,
  RunEngine,
  type EngineOptions,
  type Model,
  type ModelProvider,
} from 'runwright/agent'
import {
  evaluate,
  ScriptedModel,
  type EvaluationAttempt,
  type EvaluationEngine,
  type EvaluationOptions,
  type EvaluationTask,
  type ScriptedStep,
} from 'runwright/agent/testing'
import { scratch } from '../../../helpers/engine.js'

const done = { path: 'done', content: 'yes' }
const good: readonly ScriptedStep[] = [
  { calls: [{ tool: 'write_file', args: done }], usage: { input_tokens: 10, output_tokens: 5 } },
  { text: 'Done.' },
]
const idle: readonly ScriptedStep[] = Array(9).fill({ text: 'I see.' })
const prices = { input: 1, output: 2, as_of: '2026-01-01' }
const goal = 'shell: test -f done'

/** A provider `script` with these models. */
function scripts(models: Readonly<Record<string, () => Model>>): ModelProvider {
  return {
    id: 'script', description: 'scripts', isLanguageModel: false, suggestions: Object.keys(models),
    create: (name) => models[name]!(),
  }
}

const provider = scripts({
  good: () => new ScriptedModel(good, { name: 'script:good', prices }),
  idle: () => new ScriptedModel(idle, { name: 'script:idle', prices }),
  free: () => new ScriptedModel(good, { name: 'script:free', prices: null }),
  broken: () =>
    new ScriptedModel([{ error: { message: 'no such key' } }], {
      name: 'script:broken', prices,
    }),
})

function open(options: Partial<EngineOptions> = {}): NonNullable<EvaluationOptions['engine']> {
  return (folder) =>
    RunEngine.open({
      store: new MemoryStore(), roots: [folder], providers: [provider], checkpoints: 'off',
      sealedChecks: 'off', defaultModel: 'script:good', ...options,
    })
}

const task: EvaluationTask = { name: 'done', request: { goal, max_iterations: 2 } }

test('an evaluation needs no more than tasks, models and attempts', async (t) => {
  const folder = scratch(t)
  writeFileSync(join(folder, 'done'), '')
  const never = { name: 'never', request: { goal: 'shell: false', max_iterations: 1 } }
  const report = await evaluate({
    tasks: [{ ...task, folder }, never],
    models: ['builtin:repair'],
    attempts: 2,
  })
  const counts = report.cells.map(({ achieved, failed, errors }) => [achieved, failed, errors])
  assert.deepEqual(counts, [[2, 0, 0], [0, 2, 0]])
})

/** What must not differ between two evaluations of the same. */
function outcomes(all: readonly EvaluationAttempt[]): string[] {
  return all.map((one) => `${one.task} ${one.model} ${one.attempt}: ${one.outcome}`)
}

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
      return new Promise((_, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason as Error))
      })
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
