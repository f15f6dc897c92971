import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSchema, type JsonObject } from 'runwright/agent'
import { importSchema } from '../../../lib/agent/mcp/schema-import.js'

for (const [title, schema, fits, breaks] of [
  [
    'references are inlined',
    { type: 'object', properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: { type: 'integer' } } },
    { a: 1 },
    { a: 'x' },
  ],
  [
    'definitions of old drafts are found',
    {
      properties: { a: { $ref: '#/definitions/a~1b' } },
      definitions: { 'a/b': { type: 'string' } },
    },
    { a: 'x' },
    { a: 1 },
  ],
  ['oneOf becomes anyOf', { oneOf: [{ type: 'string' }, { type: 'null' }] }, null, 1],
  ['a list of types becomes anyOf', { type: ['string', 'null'] }, null, 1],
  [
    'allOf is merged',
    {
      allOf: [{ properties: { a: { type: 'string' } }, required: ['a'] }, { required: ['b'] }],
      additionalProperties: false,
    },
    { a: 'x', b: 1 },
    { a: 'x' },
  ],
  [
    'unknown keywords are dropped',
    {
      type: 'object',
      if: {},
      patternProperties: { x: {} },
      additionalProperties: false,
      unevaluatedProperties: false,
    },
    { x: 1 },
    1,
  ],
  [
    'items and bounds are kept',
    { type: 'array', items: { type: 'integer', minimum: 2 }, maxItems: 2 },
    [2, 3],
    [1],
  ],
  [
    'an external reference is unchecked',
    { properties: { a: { $ref: 'http://x/y' } }, required: ['a'] },
    { a: {} },
    {},
  ],
  [
    'a circular reference is unchecked',
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } },
    1,
    undefined,
  ],
] as readonly (readonly [string, JsonObject, unknown, unknown])[]) {
  test(`an imported schema: ${title}`, () => {
    const imported = importSchema(schema)
    assert.ok(imported !== null)
    assert.deepEqual(checkSchema(imported, fits), [])
    if (breaks !== undefined) assert.notDeepEqual(checkSchema(imported, breaks), [])
  })
}

test('a pattern is described to the model and never executed', () => {
  const imported = importSchema({ type: 'string', pattern: '^(a+)+$', description: 'Letters.' })
  assert.deepEqual(imported, { type: 'string', description: 'Letters. Matches ^(a+)+$' })
})

test('deep and recursive schemas are checked at their upper levels', () => {
  let deep: JsonObject = { type: 'string' }
  for (let n = 0; n < 10_000; n++) deep = { type: 'array', items: deep }
  const tree = {
    $ref: '#/$defs/t',
    $defs: {
      t: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          children: { type: 'array', items: { $ref: '#/$defs/t' } },
        },
      },
    },
  }
  const imported = importSchema(tree)
  assert.deepEqual(importSchema(imported as JsonObject), imported)
  assert.ok(imported !== null && importSchema(deep) !== null)
  assert.deepEqual(checkSchema(imported, { name: 'a', children: [{ name: 1 }] }), [])
  assert.notDeepEqual(checkSchema(imported, { name: 1 }), [])
})

test('invalid schemas and schemas that are too large are rejected', () => {
  const many = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, n) => [`p${n}`, { type: 'string' }]),
  )
  for (const schema of [{ properties: many }, 'x', null, [], { enum: ['x'.repeat(50_000)] }]) {
    assert.equal(importSchema(schema), null)
  }
})
