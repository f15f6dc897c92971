/** Models that call themselves something else than the name by which a run asked for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, ModelError, type Model, type ModelProvider } from 'runwright/agent'
import {
  follow, openEngine, runToEnd, scratch, testProvider, type Said,
} from '../../helpers/engine.js'

/** Writes a file, and is done. */
const works = (_: unknown, call: number): Said =>
  call % 2 === 0
    ? { calls: [{ tool: 'write_file', args: { path: 'done', content: String(call) } }] }
    : { text: 'done' }
const fails = (): never => {
  throw new Error('it does not work')
}

/** Models by the names by which they are asked for, and what they call themselves. */
function provider(
  models: Readonly<Record<string, readonly [own: string, answer: typeof works]>>,
): ModelProvider {
  const made = new Map<string, Model>()
  const create = (name: string): Model => {
    const [own, answer] = models[name] ?? ['', fails]
    if (own === '') throw new Error(`there is no ${name}`)
    const model = made.get(name) ?? { ...testProvider(answer).create(name), name: own }
    made.set(name, model)
    return model
  }
  return { ...testProvider(fails), create }
}

const GOAL = 'shell: test -f done'

test('a run is repeated, forked, attempted and resumed with the model that was asked for', async (t) => {
  const store = new MemoryStore()
  const cwd = scratch(t)
  const providers = [provider({ s: ['scripted:test', works] })]
  const options = { store, cwd, providers, defaultModel: 'test:s', workspaceFolder: scratch(t),
    checkpoints: 'auto' as const }
  const { engine } = await openEngine(t, options)
  const { details } = await runToEnd(engine, { goal: GOAL })
  assert.deepEqual([details.status, details.model_name], ['achieved', 'test:s'])
  const again = await engine.retry(details.run_id)
  assert.equal(again.model_name, 'test:s')
  await follow(engine, again.run_id)
  const fork = await engine.fork(details.run_id, { message: 'Once more.' })
  assert.equal(fork.details.model_name, 'test:s')
  await follow(engine, fork.details.run_id)
  const raced = await runToEnd(engine, { goal: 'shell: grep -q 2 done', attempts: { count: 1 } })
  assert.deepEqual(raced.details.attempts?.runs.map(({ model_name }) => model_name), ['test:s'])
  assert.notEqual(raced.details.attempts?.runs[0]?.reason ?? '', 'there is no model')
})

test('names that lead to another model are not stored', async (t) => {
  // Each is named as the other one is asked for.
  const crossed = provider({ a: ['test:b', fails], b: ['test:a', works] })
  const { engine } = await openEngine(t, { providers: [crossed], defaultModel: 'test:a' })
  const { details } = await runToEnd(engine, {
    goal: GOAL, model_name: 'test:a', fallback_models: ['test:b'],
  })
  assert.deepEqual([details.model_name, details.active_model], ['test:a', 'test:a'])
  assert.equal(details.error?.message, 'it does not work')
})

test('a model that calls itself something else keeps to the limits of its provider', async (t) => {
  let [live, most] = [0, 0]
  const named = provider({ b: ['one', works] })
  const create = (name: string): Model => {
    const model = named.create(name)
    const complete: Model['complete'] = async (request) => {
      most = Math.max(most, ++live)
      await new Promise((resolve) => setImmediate(resolve))
      live -= 1
      return await model.complete(request)
    }
    return { ...model, complete }
  }
  const { engine } = await openEngine(t, {
    providers: [{ ...named, create }], providerLimits: { test: { concurrent: 1 } },
    defaultModel: 'test:b', cwdPolicy: 'allow', maxConcurrentRuns: 4,
  })
  const request = { goal: 'shell: false', max_iterations: 2 }
  const runs = await Promise.all([1, 2, 3, 4].map(() => engine.create(request)))
  for (const { details } of runs) await follow(engine, details.run_id)
  assert.equal(most, 1)
})

test('another model takes over by the name by which it was asked for', async (t) => {
  const both = provider({ a: ['one', fails], b: ['one', works] })
  const broken = (name: string): Model => {
    const model = both.create(name)
    if (name !== 'a') return model
    const error = new ModelError('ERR_AGENT_MODEL_AUTH', 'no', { retryable: false })
    return { ...model, complete: () => Promise.reject(error) }
  }
  const providers = [{ ...both, create: broken }]
  const { engine } = await openEngine(t, { providers, defaultModel: 'test:a' })
  const { details } = await runToEnd(engine, { goal: GOAL, fallback_models: ['test:b'] })
  assert.deepEqual([details.status, details.active_model], ['achieved', 'test:b'])
})
