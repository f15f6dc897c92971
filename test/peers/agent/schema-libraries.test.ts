/** Tools whose schemas are of zod, valibot and arktype, in whole runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import * as z from 'zod'
import * as mini from 'zod/mini'
import {
  checkSchema,
  defineTool,
  toJsonSchema,
  type JsonObject,
  type JsonSchema,
  type Tool,
} from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

interface Stay {
  readonly city: string
  readonly nights: number
  readonly guests: readonly { readonly name: string }[]
}

/** The same schema in each library: nights are converted, guests have a default. */
const schemas = {
  zod: z.object({
    city: z.string().min(2),
    nights: z.string().regex(/^\d+$/).transform(Number),
    guests: z.array(z.object({ name: z.string() })).default([]),
  }),
  'zod/mini': mini.toJSONSchema(
    mini.object({
      city: mini.string().check(mini.minLength(2)),
      nights: mini.pipe(mini.string().check(mini.regex(/^\d+$/)), mini.transform(Number)),
      guests: mini._default(mini.array(mini.object({ name: mini.string() })), []),
    }),
    { io: 'input' },
  ),
  valibot: toStandardJsonSchema(
    v.object({
      city: v.pipe(v.string(), v.minLength(2)),
      nights: v.pipe(v.string(), v.regex(/^\d+$/), v.transform(Number)),
      guests: v.optional(v.array(v.object({ name: v.string() })), []),
    }),
  ),
  arktype: type({
    city: 'string >= 2',
    nights: ['/^\\d+$/', '=>', (text: string): number => Number(text)],
    guests: type({ name: 'string' }).array().default(() => []),
  }),
}

function stayTool(library: keyof typeof schemas, seen: Stay[]): Tool {
  const about = { name: 'stay', description: 'Books a stay.' } as const
  const execute = (stay: Stay): string => {
    seen.push(stay)
    return `${stay.nights + 1}`
  }
  switch (library) {
    case 'zod':
      return defineTool({ ...about, parameters: schemas.zod, execute })
    case 'zod/mini':
      return defineTool({ ...about, parameters: schemas['zod/mini'], execute })
    case 'valibot':
      return defineTool({ ...about, parameters: schemas.valibot, execute })
    case 'arktype':
      return defineTool({ ...about, parameters: schemas.arktype, execute })
  }
}

const libraries = Object.keys(schemas) as (keyof typeof schemas)[]

for (const library of libraries) {
  test(`a run whose tool has a schema of ${library} corrects a call and goes on`, async (t) => {
    const seen: Stay[] = []
    const guests = [{ name: 'Ada' }, { name: 7 }]
    const turns: readonly JsonObject[] = [
      { city: 'U', nights: 2, guests },
      { city: 'Ulm', nights: '2' },
    ]
    const { engine } = await openEngine(t, {
      tools: [stayTool(library, seen)],
      providers: [
        testProvider((_, n) => {
          const args = turns[n]
          return args === undefined ? {} : { calls: [{ tool: 'stay', args }] }
        }),
      ],
    })
    const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
    const results = events.flatMap((one) => (one.kind === 'tool_result' ? [one.payload] : []))
    assert.deepEqual(results.map(({ exit_code }) => exit_code), [1, 0])
    const told = results[0]?.output ?? ''
    for (const field of ['city', 'nights', 'guests/1/name']) {
      assert.ok(told.includes(`\n- ${field}: `), told)
    }
    assert.match(told, /\(its fields: city, guests, nights\)|\(its fields: city, nights, guests\)/)
    assert.equal(results[1]?.output, '3')
    assert.deepEqual(seen, [{ city: 'Ulm', nights: 2, guests: [] }])
  })

  test(`the JSON Schema that ${library} writes for input says what the library accepts`, () => {
    const schema: JsonSchema = stayTool(library, []).parameters
    assert.deepEqual(checkSchema(schema, { city: 'Ulm', nights: '2' }), [])
    const violations = checkSchema(schema, { city: 'U', nights: '2', guests: [{}] })
    const pointers = violations.map(({ pointer }) => pointer).sort()
    assert.deepEqual(pointers, ['/city', '/guests/0/name'])
  })
}

test('an asynchronous refinement of zod is awaited', async (t) => {
  const parameters = z.object({
    city: z.string().refine(async (city) => city !== 'Atlantis', 'there is no such city'),
  })
  const tool = defineTool({ name: 'a', description: 'b', parameters, execute: () => 'there' })
  const { engine } = await openEngine(t, {
    tools: [tool],
    providers: [
      testProvider((_, n) => {
        const city = ['Atlantis', 'Ulm'][n]
        return city === undefined ? {} : { calls: [{ tool: 'a', args: { city } }] }
      }),
    ],
  })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const outputs = events.flatMap((one) => (one.kind === 'tool_result' ? [one.payload.output] : []))
  assert.match(outputs[0] ?? '', /- city: there is no such city/)
  assert.equal(outputs[1], 'there')
})

for (const [what, schema, message] of [
  ['valibot, not wrapped', v.object({ a: v.string() }), /pass toStandardJsonSchema\(schema\)/],
  ['zod/mini, not wrapped', mini.object({ a: mini.string() }), /pass z.toJSONSchema\(schema\)/],
  ['zod with a date', z.object({ a: z.date() }), /by zod: Date cannot be represented/],
  ['zod of a text', z.string(), /must be a schema of an object, got one of "string"/],
] as const) {
  test(`a schema of ${what} is refused with what to do`, () => {
    const definition = { name: 'a', description: 'b', parameters: schema, execute: () => '' }
    assert.throws(() => defineTool(definition as never), { name: 'TypeError', message })
  })
}

test('unions, recursion and named parts of zod become schemas that are checked here', () => {
  const tree = z.object({
    name: z.string(),
    get parts() {
      return z.array(tree)
    },
  })
  const named = z.object({ a: z.string() }).meta({ id: 'Named', owner: 'us' })
  const union = z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('a'), tree }),
    z.object({ kind: z.literal('b'), named }),
  ])
  const { parameters } = defineTool({
    name: 'a', description: 'b', parameters: union, execute: ({ kind }) => kind,
  })
  const leaf = { name: 'x', parts: [] }
  assert.deepEqual(checkSchema(parameters, { kind: 'a', tree: { name: 'x', parts: [leaf] } }), [])
  assert.equal(checkSchema(parameters, { kind: 'b', named: { a: 1 } }).length, 1)
  assert.deepEqual(checkSchema(toJsonSchema(tree), { name: 'x', parts: [{}] }).length, 2)
})

test('toJsonSchema writes what a library returns as well', () => {
  assert.deepEqual(toJsonSchema(schemas.zod).required, ['city', 'nights'])
  const filled = z.object({ a: z.string().default('x') })
  assert.equal(toJsonSchema(filled).required, undefined)
  assert.deepEqual(toJsonSchema(filled, 'output').required, ['a'])
})
