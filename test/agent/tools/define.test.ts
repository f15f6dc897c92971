import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  checkArguments,
  defineTool,
  type JsonSchema,
  type SchemaValue,
  type Tool,
} from 'runwright/agent'
import { toolContext } from './tool-context.js'

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
  required: ['city'],
} as const satisfies JsonSchema

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Flat<T> = { [K in keyof T]: T[K] }
const typed: Equal<
  Flat<SchemaValue<typeof parameters>>,
  { readonly city: string; readonly days?: number }
> = true

test('arguments have the type that their schema describes', async (t) => {
  const tool = defineTool({
    name: 'weather',
    description: 'The weather.',
    parameters,
    effect: 'read',
    execute: ({ city, days = 1 }) => `${city.toUpperCase()} ${days.toFixed(1)}`,
  })
  assert.ok(typed)
  const context = await toolContext(t)
  assert.deepEqual(await tool.execute({ city: 'Ulm' }, context), { output: 'ULM 1.0', exitCode: 0 })
  const wrong = await tool.execute({ city: 7 }, context)
  assert.equal(wrong.exitCode, 1)
  assert.match(wrong.output, /- city must be a string, got 7/)
})

test('by default a tool is unsafe and refuses unknown fields', () => {
  const tool = defineTool({ name: 'x', description: 'x', parameters, execute: () => '' })
  assert.equal(tool.effect, 'unsafe')
  assert.match(checkArguments(tool, { city: 'x', more: 1 }) ?? '', /more is not a known field/)
  const open = { ...parameters, additionalProperties: true }
  const tolerant = defineTool({ name: 'x', description: 'x', parameters: open, execute: () => '' })
  assert.equal(checkArguments(tolerant, { city: 'x', more: 1 }), null)
})

test('an output with its own exit code is passed on; an exception is not caught', async (t) => {
  const context = await toolContext(t)
  const make = (execute: () => Promise<{ output: string; exitCode: number }>): Tool =>
    defineTool({ name: 'x', description: 'x', parameters: { type: 'object' }, execute })
  assert.deepEqual(await make(async () => ({ output: 'no', exitCode: 4 })).execute({}, context), {
    output: 'no',
    exitCode: 4,
  })
  await assert.rejects(
    make(async () => {
      throw new Error('broken')
    }).execute({}, context),
    /broken/,
  )
})

const valid = {
  name: 'x',
  description: 'x',
  parameters: { type: 'object' },
  execute: () => '',
} as const

for (const { change, message } of [
  { change: { name: 'a b' }, message: /name must be 1 to 64 letters, digits, - or _, got "a b"/ },
  { change: { name: 'x'.repeat(65) }, message: /name must be/ },
  { change: { description: ' ' }, message: /tool x: description must be text/ },
  {
    change: { effect: 'maybe' },
    message: /effect must be read, idempotent or unsafe, got "maybe"/,
  },
  { change: { effect: 'idempotent' }, message: /needs plan\(\) and verify\(\)/ },
  { change: { execute: undefined }, message: /needs execute: the function/ },
  { change: { parameters: { type: 'string' } }, message: /with type: 'object'/ },
  {
    change: { parameters: { type: 'object', required: ['a'] } },
    message: /parameters.required names a/,
  },
  {
    change: {
      parameters: { type: 'object', properties: { a: { type: 'array', items: { pattern: '(' } } } },
    },
    message: /parameters.properties.a.items.pattern is not a regular expression: "\("/,
  },
  {
    change: { parameters: { type: 'object', properties: { a: null } } },
    message: /properties.a must be a schema/,
  },
]) {
  test(`a definition with ${JSON.stringify(change)} is refused`, () => {
    assert.throws(() => defineTool({ ...valid, ...(change as object) }), (error: unknown) => {
      return error instanceof TypeError && message.test(error.message)
    })
  })
}
