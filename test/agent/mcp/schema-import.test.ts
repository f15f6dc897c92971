import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSchema, type JsonObject, type JsonSchema } from 'runwright/agent'
import { importSchema } from '../../../lib/agent/mcp/schema-import.js'
import type { McpServerConfig } from '../../../lib/agent/mcp/options.js'
import { buildTools } from '../../../lib/agent/mcp/tools.js'

function imported(schema: JsonObject): { schema: JsonSchema; unchecked: readonly string[] } {
  const result = importSchema(schema, false)
  assert.ok(result.schema !== null, result.problem ?? '')
  return result
}

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

for (const [title, schema, fits, breaks] of [
  [
    'references are followed',
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
  [
    'references into a part of another name are followed',
    {
      properties: { a: { $ref: '#/components/schemas/A' } },
      components: { schemas: { A: { type: 'string' } } },
    },
    { a: 'x' },
    { a: 1 },
  ],
  ['oneOf means one', { oneOf: [{ minimum: 1 }, { maximum: 3 }] }, 0, 2],
  ['a list of types', { type: ['string', 'null'] }, null, 1],
  ['exclusive bounds', { type: 'number', exclusiveMinimum: 0 }, 1, -5000],
  ['exclusive bounds of draft 4', { minimum: 0, exclusiveMinimum: true }, 1, 0],
  ['bounds of draft 4 that are not exclusive', { minimum: 0, exclusiveMinimum: false }, 0, -1],
  ['lists of items of old drafts', { items: [{ type: 'string' }], additionalItems: false }, ['a'], ['a', 1]],
  ['dependencies of old drafts', { dependencies: { a: ['b'] } }, { a: 1, b: 1 }, { a: 1 }],
  [
    'dependent schemas of old drafts',
    { dependencies: { a: { required: ['b'] } } },
    { a: 1, b: 1 },
    { a: 1 },
  ],
  [
    'allOf',
    {
      allOf: [{ properties: { a: { type: 'string' } }, required: ['a'] }, { required: ['b'] }],
      unevaluatedProperties: { type: 'integer' },
    },
    { a: 'x', b: 1 },
    { a: 'x' },
  ],
  [
    'conditions and patterns of names',
    {
      type: 'object',
      if: { required: ['x'] },
      then: { required: ['y'] },
      patternProperties: { '^[xy]$': {} },
      additionalProperties: false,
    },
    { x: 1, y: 1 },
    { x: 1 },
  ],
  [
    'items and bounds',
    { type: 'array', items: { type: 'integer', minimum: 2 }, maxItems: 2 },
    [2, 3],
    [1],
  ],
  ['recursion, at all levels', tree, { name: 'a', children: [{ name: 'b' }] }, { children: [{ children: [{ name: 1 }] }] }],
  ['patterns that are quadratic for RegExp', { pattern: '^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$' }, 'a@b.c', 'a@b'],
  ['patterns that are exponential for RegExp', { pattern: '^(a+)+$' }, 'aaa', `${'a'.repeat(50)}!`],
] as readonly (readonly [string, JsonObject, unknown, unknown])[]) {
  test(`an imported schema: ${title}`, () => {
    const { schema: own, unchecked } = imported(schema)
    assert.deepEqual(unchecked, [])
    assert.deepEqual(checkSchema(own, fits), [])
    assert.notDeepEqual(checkSchema(own, breaks), [])
  })
}

test('a pattern that cannot be matched in linear time is described to the model, and named', () => {
  const { schema, unchecked } = imported({
    type: 'object',
    properties: {
      a: { pattern: '^(?!x)a', type: 'string', description: 'Letters.', minLength: 2 },
    },
  })
  assert.deepEqual(schema.properties, {
    a: { type: 'string', description: 'Letters. Matches ^(?!x)a', minLength: 2 },
  })
  assert.deepEqual(unchecked, ['.properties.a.pattern has a lookaround or a modifier'])
  assert.deepEqual(checkSchema(schema, { a: 'xa' }), [])
  assert.equal(checkSchema(schema, { a: 'x' }).length, 1)
})

test('rules that are malformed are named, and the rest is checked', () => {
  const { schema, unchecked } = imported({
    type: 'object',
    properties: { a: { type: 'text', required: true, maxLength: 3 } },
  })
  assert.equal(unchecked.length, 2)
  assert.match(unchecked.join(), /\.a\.type names a type that JSON does not have,.*\.a\.required/)
  assert.equal(checkSchema(schema, { a: 'long text' }).length, 1)
})

for (const [title, schema, problem] of [
  ['an external reference', { properties: { a: { $ref: 'http://x/y' } } }, /\$ref leads to "http:\/\/x\/y", which is not/],
  ['a reference to itself', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, /leads back to itself/],
  ['a dynamic reference', { $dynamicRef: '#a' }, /\$dynamicRef is not supported/],
  ['a vocabulary of its own', { $schema: 'https://example.com/mine' }, /\$schema must be a draft/],
  ['an unchecked rule in not', { not: { pattern: '(?=a)' } }, /lookaround.* not needs all/],
  ['a pattern of names that is not linear', { patternProperties: { '(?=a)': {} } }, /lookaround/],
  ['many parts', { allOf: Array.from({ length: 2_000 }, () => ({})) }, /more than 1000 parts/],
  ['a long list', { enum: ['x'.repeat(50_000)] }, /more than 24000 characters/],
  ['a part that is no schema', { properties: { a: 1 } }, /\.properties\.a is no schema/],
] as readonly (readonly [string, JsonObject, RegExp])[]) {
  test(`a schema with ${title} cannot be imported`, () => {
    assert.match(importSchema(schema, false).problem ?? '', problem)
  })
}

test('schemas and values nested too deeply cannot be imported', () => {
  let deep: JsonObject = { type: 'string' }
  let value: JsonObject = {}
  for (let n = 0; n < 10_000; n++) [deep, value] = [{ type: 'array', items: deep }, { a: value }]
  assert.match(importSchema(deep, false).problem ?? '', /nested more than 64/)
  for (const keyword of ['enum', 'const', 'default']) {
    const given = keyword === 'enum' ? [value] : value
    assert.match(importSchema({ [keyword]: given }, false).problem ?? '', /nested beyond 64/)
  }
})

test('what is no schema object cannot be imported', () => {
  for (const schema of ['x', null, []]) {
    assert.equal(importSchema(schema, false).problem, 'is no schema object')
  }
})

test('a server is warned about by name for each tool that is left out or checked in part', () => {
  const warnings: string[] = []
  const config = {
    name: 'bank', tools: null, maxTools: 9, effectOf: () => 'unsafe',
    onWarning: (text: string) => void warnings.push(text),
  } as unknown as McpServerConfig
  const list = [
    { name: 'pay', inputSchema: { properties: { sum: { type: 'number', exclusiveMinimum: 0 } } } },
    { name: 'far', inputSchema: { $ref: 'https://bank.example/far\u202e' } },
    { name: 'part', inputSchema: { properties: { a: { pattern: '(?=a)' } } } },
    { name: 'out', outputSchema: { $dynamicRef: '#x' } },
  ]
  const tools = buildTools(list, config, () => Promise.reject(new Error('not called')))
  assert.deepEqual(tools.map(({ name }) => name), ['bank__pay', 'bank__part', 'bank__out'])
  assert.equal(checkSchema(tools[0]!.parameters, { sum: -5000 }).length, 1)
  assert.deepEqual(warnings, [
    'MCP server bank: the schema of its tool "far" .$ref leads to "https://bank.example/far\\u202e", ' +
      'which is not in this document; the tool is left out',
    'MCP server bank: in the schema of its tool "part", rules are not checked here: ' +
      '.properties.a.pattern has a lookaround or a modifier',
    'MCP server bank: the output schema of its tool "out" .$dynamicRef is not supported; use $ref; ' +
      'results are not checked',
  ])
})
