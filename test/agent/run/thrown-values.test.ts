/** Code of a host may throw anything: its runs go on, or end, as after an ordinary error. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defineTool, type EngineOptions, type Executor } from 'runwright/agent'
import { kinds, last } from '../run-events.js'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

const refusing = (name: string): Error =>
  Object.defineProperty(new Error('x'), name, { get: () => assert.fail(`${name} was read`) })

const THROWN: Readonly<Record<string, unknown>> = {
  nothing: undefined,
  'an object without prototype': Object.create(null),
  'a symbol': Symbol('x'),
  'an error whose message cannot be read': refusing('message'),
  'an error whose code cannot be read': refusing('code'),
  'an error whose cause cannot be read': refusing('cause'),
  'an error whose stack cannot be read': refusing('stack'),
  'an error whose name cannot be read': refusing('name'),
}

const call = { calls: [{ tool: 'look', args: {} }] }
const tool = (execute: () => string) =>
  defineTool({
    name: 'look', description: 'looks', parameters: { type: 'object' }, effect: 'read', execute,
  })

/** Engines in which one piece of code throws. */
const PLACES: Readonly<Record<string, (thrower: () => never) => Partial<EngineOptions>>> = {
  'a tool': (thrower) => ({
    tools: [tool(thrower)], providers: [testProvider((_, n) => (n === 0 ? call : {}))],
  }),
  'a model': (thrower) => ({ providers: [testProvider(thrower)] }),
  'the decision for a call': (thrower) => ({
    tools: [tool(() => 'x')], providers: [testProvider(() => call)], approval: thrower,
    gateTimeoutMs: 1,
  }),
  'an executor': (thrower) => ({
    providers: [testProvider(() => ({}))],
    executor: { name: 'odd', run: async () => thrower(), killMarked: async () => 0 } as Executor,
  }),
  'a tracer': (thrower) => ({
    providers: [testProvider(() => ({}))],
    tracer: { startSpan: thrower, addEvent: thrower, endSpan: thrower },
  }),
}

for (const [place, options] of Object.entries(PLACES)) {
  for (const [title, value] of Object.entries(THROWN)) {
    test(`${place} may throw ${title}`, async (t) => {
      const plain = await ending(t, options, new Error('x'))
      assert.deepEqual(await ending(t, options, value), plain)
    })
  }
}

async function ending(
  t: TestContext,
  options: (thrower: () => never) => Partial<EngineOptions>,
  value: unknown,
): Promise<unknown> {
  const engine = options(() => {
    throw value
  })
  const { engine: opened } = await openEngine(t, engine)
  const { events } = await runToEnd(opened, { goal: 'shell: false', max_iterations: 1 })
  return [kinds(events), last(events).end_reason]
}
