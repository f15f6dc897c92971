/** Tools whose schema is of a library, here one of the test: Standard Schema without packages. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  defineTool,
  toJsonSchema,
  type JsonObject,
  type JsonSchema,
  type StandardIssue,
  type StandardSchema,
  type Tool,
} from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { follow, openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { toolContext } from './tool-context.js'

interface Order {
  readonly pieces: number
}

type Validate = StandardSchema<unknown, Order>['~standard']['validate']

const WRITTEN: JsonSchema = {
  type: 'object',
  properties: { pieces: { type: 'string' } },
  required: ['pieces'],
}

/** Reads the text `pieces` as a number, which no JSON Schema can do. */
const readPieces: Validate = (value) => {
  const { pieces } = value as { readonly pieces?: unknown }
  if (Number(pieces) >= 1) return { value: { pieces: Number(pieces) } }
  return { issues: [{ message: 'Expected pieces', path: ['pieces'] }] }
}

function library(
  validate: Validate = readPieces,
  input: () => object = () => WRITTEN,
): StandardSchema<unknown, Order> {
  const jsonSchema = { input, output: () => ({ type: 'object', title: 'after' }) }
  return { '~standard': { version: 1, vendor: 'own', validate, jsonSchema } }
}

function orderTool(
  schema: StandardSchema<unknown, Order> = library(),
  options: { readonly effect?: 'read' | 'unsafe'; readonly timeoutMs?: number } = {},
): Tool & { readonly seen: unknown[] } {
  const seen: unknown[] = []
  const tool = defineTool({
    name: 'order', description: 'orders', parameters: schema, effect: 'read', ...options,
    execute: (args) => {
      seen.push(args)
      return `${args.pieces + 1}`
    },
  })
  return { ...tool, seen }
}

/** The events of a run whose model calls the tool once. */
async function runCall(
  t: TestContext,
  tool: Tool,
  args: JsonObject,
  clock?: ManualClock,
): Promise<readonly [exitCode: number, output: string, kinds: readonly string[]]> {
  const { engine } = await openEngine(t, {
    tools: [tool], clock,
    providers: [testProvider((_, n) => (n > 0 ? {} : { calls: [{ tool: 'order', args }] }))],
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const result = events.find(({ kind }) => kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  return [result.payload.exit_code, result.payload.output, events.map(({ kind }) => kind)]
}

test('the tool gets what the library makes of the arguments, though they are not in its words', async (t) => {
  const tool = orderTool()
  // By the JSON Schema that was written, 3 is no text; the library has the word.
  assert.deepEqual((await runCall(t, tool, { pieces: 3 })).slice(0, 2), [0, '4'])
  assert.deepEqual(tool.seen, [{ pieces: 3 }])
})

test('the model is sent the schema that the library wrote for input', () => {
  assert.deepEqual(orderTool().parameters, WRITTEN)
})

test('what is wrong with arguments goes back to the model, and the call never begins', async (t) => {
  const tool = orderTool()
  const [exitCode, output, kinds] = await runCall(t, tool, { pieces: 'none' })
  assert.equal(exitCode, 1)
  assert.equal(output, [
    'order was not run, because its arguments are invalid:',
    '- pieces: Expected pieces',
    'Call order again with corrected arguments (its fields: pieces).',
  ].join('\n'))
  assert.deepEqual(tool.seen, [])
  assert.ok(!kinds.includes('tool_started'))
})

test('a call is validated once, also for a tool with a plan', async (t) => {
  let validations = 0
  const counting: Validate = async (value) => {
    validations += 1
    return await readPieces(value)
  }
  const planned: unknown[] = []
  const tool = defineTool({
    name: 'order', description: 'orders', parameters: library(counting), effect: 'idempotent',
    plan: async (args) => {
      planned.push(args)
      return {}
    },
    verify: async () => 'undone',
    execute: ({ pieces }) => `${pieces}`,
  })
  assert.deepEqual((await runCall(t, tool, { pieces: '3' })).slice(0, 2), [0, '3'])
  assert.deepEqual([planned, validations], [[{ pieces: 3 }], 1])
})

test('verify() of arguments that the schema does not know any more cannot tell', async (t) => {
  const tool = defineTool({
    name: 'order', description: 'orders', parameters: library(), effect: 'idempotent',
    plan: async () => ({}),
    verify: async ({ pieces }) => (pieces === 3 ? 'done' : 'undone'),
    execute: () => '',
  })
  const context = await toolContext(t)
  assert.equal(await tool.verify?.({ pieces: '3' }, {}, context), 'done')
  assert.equal(await tool.verify?.({ pieces: 'none' }, {}, context), 'unknown')
  await assert.rejects(async () => await tool.plan?.({}, context), /order was not run/)
})

test('a validation that never ends is stopped when the time of the call is over', async (t) => {
  const clock = new ManualClock()
  const waiting = orderTool(library(() => new Promise(() => {})), { timeoutMs: 50 })
  let over = false
  const going = runCall(t, waiting, {}, clock).finally(() => (over = true))
  while (!over) {
    await new Promise(setImmediate)
    clock.advance(10)
  }
  const [exitCode, output, kinds] = await going
  assert.equal(exitCode, 124)
  assert.match(output, /did not end within 0.05 s/)
  assert.ok(!kinds.includes('tool_started'))
})

for (const [what, validate, message] of [
  ['throws', () => { throw new Error('no database') }, /^order failed: no database$/],
  ['rejects', () => Promise.reject(new Error('no database')), /^order failed: no database$/],
  ['returns nothing', () => undefined as never, /validate\(\) of own returned nothing/],
] as const satisfies readonly (readonly [string, Validate, RegExp])[]) {
  test(`a library that ${what} fails the call, not the run`, async (t) => {
    const [exitCode, output] = await runCall(t, orderTool(library(validate)), {})
    assert.equal(exitCode, 1)
    assert.match(output, message)
  })
}

const key = `sk-ant-api03-${'k'.repeat(60)}`

for (const { issue, line } of [
  { issue: { message: 'wrong' }, line: '- the arguments: wrong' },
  { issue: { message: 'wrong', path: [] }, line: '- the arguments: wrong' },
  { issue: { message: 'wrong', path: ['a', 0, { key: 'b' }] }, line: '- a/0/b: wrong' },
  { issue: { message: 'a\n  or b' }, line: '- the arguments: a or b' },
  { issue: { message: 'x'.repeat(1000) }, line: `- the arguments: ${'x'.repeat(300)}…` },
  { issue: { message: 7 as never, path: [Symbol('s')] }, line: '- Symbol(s): 7' },
  { issue: { message: 'x', path: Array(99).fill('a') }, line: `- ${Array(16).fill('a').join('/')}: x` },
] satisfies { issue: StandardIssue; line: string }[]) {
  test(`an issue is told as ${line.slice(0, 40)}`, async (t) => {
    const tool = orderTool(library(() => ({ issues: [issue] })))
    const { output } = await tool.execute({}, await toolContext(t))
    assert.equal(output.split('\n')[1], line)
  })
}

test('at most eight issues are told, and none of them shows a key', async (t) => {
  const issues = Array.from({ length: 11 }, () => ({ message: `got "${key}"` }))
  const tool = orderTool(library(() => ({ issues })))
  const { output } = await tool.execute({}, await toolContext(t))
  assert.match(output, /\n- and 3 more\n/)
  assert.ok(!output.includes('k'.repeat(20)))
})

test('arguments that a human edits are validated when the call runs', async (t) => {
  const tool = orderTool(library(), { effect: 'unsafe' })
  const calls = [{ tool: 'order', args: { pieces: '1' }, call_id: 'c' }]
  const { engine } = await openEngine(t, {
    tools: [tool], providers: [testProvider((_, n) => (n > 0 ? {} : { calls }))],
  })
  const { details } = await engine.create({
    goal: 'shell: false', max_iterations: 1, approval: 'all',
  })
  await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const edits = { c: { args: { pieces: 6 } } }
  await engine.resume(details.run_id, { decision: 'approve', edits })
  await follow(engine, details.run_id)
  assert.deepEqual(tool.seen, [{ pieces: 6 }])
})

test('the schema of a union or a reference becomes one of an object', () => {
  const union = { oneOf: [WRITTEN, { type: 'object' }] }
  const tool = orderTool(library(readPieces, () => union))
  assert.deepEqual(tool.parameters, { type: 'object', ...union })
})

test('keywords that only the library knows, and parts that are no JSON, do no harm', () => {
  const written = { ...WRITTEN, 'x-order': 1, write: () => '', nothing: undefined }
  assert.deepEqual(orderTool(library(readPieces, () => written)).parameters, {
    ...WRITTEN, 'x-order': 1,
  })
})

const cyclic: Record<string, unknown> = { type: 'object' }
cyclic['self'] = cyclic

for (const { what, schema, message } of [
  {
    what: 'validates only',
    schema: { '~standard': { ...library()['~standard'], jsonSchema: undefined } },
    message: /^tool order: parameters of own validates, but cannot write itself as JSON Schema/,
  },
  ...[
    ['own', /put \{ input, output \}/],
    ['zod', /use zod 4.2 or later, and with zod\/mini pass z.toJSONSchema\(schema\)/],
    ['arktype', /use arktype 2.1.28 or later/],
    ['valibot', /pass toStandardJsonSchema\(schema\) of @valibot\/to-json-schema/],
    ['constructor', /put \{ input, output \}/],
  ].map(([vendor, message]) => ({
    what: `validates only and is of ${vendor as string}`,
    schema: { '~standard': { version: 1, vendor, validate: readPieces } },
    message: message as RegExp,
  })),
  {
    what: 'is of version 2', schema: { '~standard': { ...library()['~standard'], version: 2 } },
    message: /must be a Standard Schema of version 1; that of own is none/,
  },
  { what: 'is empty', schema: { '~standard': null }, message: /that of an unknown library is/ },
  {
    what: 'cannot be written',
    schema: library(readPieces, () => { throw new Error('Date cannot be represented') }),
    message: /cannot be written as JSON Schema by own: Date cannot be represented; use types/,
  },
  {
    what: 'leads to itself', schema: library(readPieces, () => cyclic),
    message: /cannot be written as JSON Schema by own/,
  },
  {
    what: 'writes a text', schema: library(readPieces, () => 'x' as never),
    message: /must be an object as JSON Schema, got a string/,
  },
  {
    what: 'writes nothing', schema: library(readPieces, () => undefined as never),
    message: /cannot be written as JSON Schema by own/,
  },
  {
    what: 'is of a text', schema: library(readPieces, () => ({ type: 'string' })),
    message: /must be a schema of an object, got one of "string"/,
  },
  {
    what: 'has a pattern that is none',
    schema: library(readPieces, () => ({ type: 'object', properties: { a: { pattern: '\\-' } } })),
    message: /tool order: parameters.properties.a.pattern is not a regular expression/,
  },
]) {
  test(`a schema of a library that ${what} is refused`, () => {
    assert.throws(() => orderTool(schema as never), (error: unknown) => {
      assert.ok(error instanceof TypeError)
      assert.match(error.message, message)
      return true
    })
  })
}

test('toJsonSchema writes either side of a schema, and returns a JSON Schema as it is', () => {
  assert.deepEqual(toJsonSchema(library()), WRITTEN)
  assert.deepEqual(toJsonSchema(library(), 'output'), { type: 'object', title: 'after' })
  assert.equal(toJsonSchema(WRITTEN), WRITTEN)
  assert.throws(() => toJsonSchema(library(), 'both' as never), /side must be input or output/)
  assert.throws(() => toJsonSchema('x' as never), /a schema must be a schema object, got a string/)
})
