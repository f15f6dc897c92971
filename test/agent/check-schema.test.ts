import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSchema } from '../../lib/agent/check-schema.js'
import type { JsonSchema } from '../../lib/agent/schema.js'

const KEY = `ghp_${'abc123DEF456'.repeat(3)}`

const request: JsonSchema = {
  type: 'object',
  properties: {
    goal: { type: 'string', minLength: 1, maxLength: 10 },
    max_iterations: { type: 'integer', minimum: 1, maximum: 1000 },
    hitl_enabled: { type: 'boolean' },
    approval: { type: 'string', enum: ['never', 'writes', 'all'] },
    max_cost_usd: { anyOf: [{ type: 'number', minimum: 0 }, { type: 'null' }] },
    metadata: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 2 },
    tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' }, maxItems: 3 },
    id: { type: 'string', minLength: 4, maxLength: 4 },
    pair: { type: 'array', minItems: 2, maxItems: 2 },
  },
  required: ['goal'],
  additionalProperties: false,
}

for (const { name, value, expect } of [
  { name: 'a right value', value: { goal: 'x', tags: ['a'], max_cost_usd: null }, expect: [] },
  {
    name: 'a number as text',
    value: { goal: 'x', max_iterations: '20' },
    expect: ['/max_iterations: must be an integer from 1 to 1000, got "20"'],
  },
  {
    name: 'a fraction',
    value: { goal: 'x', max_iterations: 1.5 },
    expect: ['/max_iterations: must be an integer from 1 to 1000, got 1.5'],
  },
  {
    name: 'a number beyond its range',
    value: { goal: 'x', max_iterations: 1001 },
    expect: ['/max_iterations: must be an integer from 1 to 1000, got 1001'],
  },
  { name: 'a missing field', value: {}, expect: ['/goal: is required'] },
  {
    name: 'an unknown field',
    value: { goal: 'x', hitl_enable: true },
    expect: ['/hitl_enable: is not a known field; did you mean hitl_enabled?'],
  },
  {
    name: 'a field in another case',
    value: { goal: 'x', maxIterations: 3 },
    expect: ['/maxIterations: is not a known field; did you mean max_iterations?'],
  },
  {
    name: 'a field like none',
    value: { goal: 'x', 'a/b~c': true },
    expect: ['/a~1b~0c: is not a known field'],
  },
  {
    name: 'an empty string',
    value: { goal: '' },
    expect: ['/goal: must be a string of 1 to 10 characters, got an empty string'],
  },
  {
    name: 'a long string',
    value: { goal: 'x'.repeat(11) },
    expect: ['/goal: must be a string of 1 to 10 characters, got one of 11'],
  },
  {
    name: 'a word that is no choice',
    value: { goal: 'x', approval: 'sometimes' },
    expect: ['/approval: must be one of "never", "writes", "all", got "sometimes"'],
  },
  {
    name: 'a value that one branch is meant for',
    value: { goal: 'x', max_cost_usd: -1 },
    expect: ['/max_cost_usd: must be a number of at least 0, got -1'],
  },
  {
    name: 'a value that no branch is meant for',
    value: { goal: 'x', max_cost_usd: true },
    expect: ['/max_cost_usd: must be a number of at least 0, or null, got true'],
  },
  {
    name: 'a value of free fields',
    value: { goal: 'x', metadata: { a: 1 } },
    expect: ['/metadata/a: must be a string, got 1'],
  },
  {
    name: 'too many free fields',
    value: { goal: 'x', metadata: { a: '', b: '', c: '' } },
    expect: ['/metadata: must be an object of at most 2 fields, got more'],
  },
  {
    name: 'an item',
    value: { goal: 'x', tags: ['a', 'B'] },
    expect: ['/tags/1: must be a string that matches ^[a-z]+$, got "B"'],
  },
  {
    name: 'too many items',
    value: { goal: 'x', tags: ['a', 'b', 'c', 'd'] },
    expect: ['/tags: must be an array of at most 3 items, got an array of 4'],
  },
  {
    name: 'a secret, which is not repeated',
    value: { goal: 'x', approval: KEY, [KEY]: 1 },
    expect: [
      '/approval: must be one of "never", "writes", "all", got "[secret removed]"',
      '/[secret removed]: is not a known field',
    ],
  },
  {
    name: 'a length that is the only one',
    value: { goal: 'x', id: 'abc', pair: [] },
    expect: [
      '/id: must be a string of 4 characters, got one of 3',
      '/pair: must be an array of 2 items, got an array of 0',
    ],
  },
  {
    name: 'a list in place of an object',
    value: [],
    expect: ['/: must be an object, got an array of 0'],
  },
  { name: 'nothing at all', value: undefined, expect: ['/: must be an object, got nothing'] },
  {
    name: 'several faults at once',
    value: { goal: 1, hitl_enabled: 'yes' },
    expect: [
      '/goal: must be a string of 1 to 10 characters, got 1',
      '/hitl_enabled: must be true or false, got "yes"',
    ],
  },
]) {
  test(`a violation of ${name} says what was expected and what came`, () => {
    const found = checkSchema(request, value)
    assert.deepEqual(found.map(({ pointer, detail }) => `${pointer || '/'}: ${detail}`), expect)
  })
}

test('lengths are counted in code points', () => {
  const schema: JsonSchema = { type: 'string', minLength: 2, maxLength: 3 }
  assert.deepEqual(checkSchema(schema, '🙂🙂🙂'), [])
  assert.equal(checkSchema(schema, '🙂').length, 1)
  assert.equal(checkSchema(schema, '🙂🙂🙂🙂').length, 1)
})

for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
  test(`a field named ${name} is a field like any other`, () => {
    const value: unknown = JSON.parse(`{"goal":"x","${name}":{"a":1}}`)
    assert.deepEqual(checkSchema(request, value), [
      { pointer: `/${name}`, detail: 'is not a known field' },
    ])
    const needed: JsonSchema = { type: 'object', required: [name] }
    assert.equal(checkSchema(needed, {}).length, 1)
    assert.deepEqual(checkSchema(needed, JSON.parse(`{"${name}":1}`)), [])
  })
}

test('no more than 32 violations are reported, however many there are', () => {
  const value = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`field${i}`, i]))
  assert.equal(checkSchema(request, value).length, 32)
})

test('a value that is nested too deeply is refused', () => {
  const $defs = { list: { items: { $ref: '#/$defs/list' } } }
  const schema: JsonSchema = { $ref: '#/$defs/list', $defs }
  let value: unknown = []
  for (let i = 0; i < 64; i++) value = [value]
  assert.deepEqual(checkSchema(schema, value), [])
  for (let i = 0; i < 5_000; i++) value = [value]
  const found = checkSchema(schema, value)
  assert.equal(found.length, 1)
  assert.match(found[0]!.detail, /nested more than 64/)
  assert.match(checkSchema({ not: { $ref: '#/$defs/list' }, $defs }, value)[0]!.detail, /nested more than 64/)
})

test('nested alternatives cannot cause unbounded work', () => {
  let schema: JsonSchema = { type: 'string' }
  for (let i = 0; i < 40; i++) schema = { anyOf: [schema, schema] }
  assert.match(checkSchema(schema, 1)[0]!.detail, /too large to be checked/)
})

test('a long string is not quoted, and an unprintable one is escaped', () => {
  const [violation] = checkSchema({ type: 'integer' }, `\u0000"${'🙂'.repeat(500)}`)
  assert.equal(violation!.detail, 'must be an integer, got a text of 1002')
  const [short] = checkSchema({ type: 'integer' }, '\u0000"🙂')
  assert.equal(short!.detail, 'must be an integer, got "\\u0000\\"🙂"')
})

test('const and enum compare whole values', () => {
  const schema: JsonSchema = { enum: [{ a: [1, { b: null }] }, 'x'] }
  assert.deepEqual(checkSchema(schema, { a: [1, { b: null }] }), [])
  assert.equal(checkSchema(schema, { a: [1, { b: null, c: 1 }] }).length, 1)
  assert.deepEqual(checkSchema({ const: 'x' }, 'y'), [
    { pointer: '', detail: 'must be "x", got "y"' },
  ])
})

test('a schema may list several types', () => {
  const schema = { type: ['string', 'null'] } as unknown as JsonSchema
  assert.deepEqual(checkSchema(schema, null), [])
  assert.deepEqual(checkSchema(schema, 1), [
    { pointer: '', detail: 'must be a string or null, got 1' },
  ])
})

test('values that are not JSON are violations, not exceptions', () => {
  for (const value of [() => 1, Symbol('x'), 1n, NaN, Infinity]) {
    assert.equal(checkSchema({ type: 'number' }, value).length, 1)
  }
})

const payment: JsonSchema = {
  type: 'object',
  properties: {
    sum: { type: 'number', exclusiveMinimum: 0, multipleOf: 0.01 },
    count: { type: 'integer', minimum: 1, exclusiveMaximum: 10 },
    half: { exclusiveMaximum: 1 },
    tags: { type: 'array', uniqueItems: true, contains: { type: 'string' }, maxContains: 2 },
    pair: { prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false },
    to: {
      oneOf: [
        { type: 'object', properties: { kind: { const: 'iban' }, iban: { type: 'string' } }, required: ['kind', 'iban'] },
        { type: 'object', properties: { kind: { const: 'card' }, card: { type: 'string' } }, required: ['kind', 'card'] },
      ],
    },
    either: { oneOf: [{ type: 'integer', minimum: 1 }, { type: 'integer', maximum: 3 }] },
    name: { not: { enum: ['root'] } },
    when: { $ref: '#/$defs/when' },
    labels: {
      propertyNames: { maxLength: 3 },
      patternProperties: { '^x': { type: 'integer' } },
      minProperties: 1,
    },
  },
  dependentRequired: { count: ['sum'] },
  if: { required: ['name'] },
  then: { required: ['to'] },
  allOf: [{ properties: { note: { type: 'string' } } }],
  unevaluatedProperties: false,
  $defs: { when: { type: 'string', minLength: 1 } },
}

for (const [value, expect] of [
  [{ sum: -5000 }, '/sum: must be a number that is more than 0 and a multiple of 0.01, got -5000'],
  [{ sum: 0.005 }, '/sum: must be a number that is more than 0 and a multiple of 0.01, got 0.005'],
  [{ sum: 0.07 }, undefined],
  [{ sum: 1, count: 10 }, '/count: must be an integer of at least 1, less than 10, got 10'],
  [{ half: 1 }, '/half: must be a number that is less than 1, got 1'],
  [{ tags: ['a', 1, 1] }, '/tags: must not have the same item twice: items 1 and 2 are equal'],
  [{ tags: [1] }, '/tags: must have at least 1 and at most 2 of these items: a string; got 0'],
  [{ pair: ['a', 'b'] }, '/pair/1: must be an integer, got "b"'],
  [{ pair: ['a', 1, 2] }, '/pair/2: is not allowed'],
  [{ to: { kind: 'card' } }, '/to/card: is required'],
  [{ to: {} }, '/to: must be an object with kind = "iban", iban, or an object with kind = "card", card, got an object'],
  [{ either: 2 }, '/either: must match one alternative only, got an integer of at least 1 and an integer of at most 3 at once'],
  [{ name: 'root', to: { kind: 'card', card: '1' } }, '/name: must not be "root", got "root"'],
  [{ name: 'x' }, '/to: is required'],
  [{ when: '' }, '/when: must be a string of 1 or more characters, got an empty string'],
  [{ count: 2 }, '/sum: is required beside count'],
  [{ notes: 'x' }, '/notes: is not a known field; did you mean note?'],
  [{ labels: { long: 1 } }, '/labels/long: has a name that is not allowed: it must be a string of at most 3 characters'],
  [{ labels: { x: 'a' } }, '/labels/x: must be an integer, got "a"'],
  [{ labels: {} }, '/labels: must be an object of at least 1 fields, got one of 0'],
] as const) {
  test(`${JSON.stringify(value)} is ${expect === undefined ? 'valid' : 'invalid, and why is said'}`, () => {
    const found = checkSchema(payment, value).map(({ pointer, detail }) => `${pointer}: ${detail}`)
    const wanted = expect?.replace('of 1 or more characters', 'of at least 1 characters')
    assert.deepEqual(found, wanted === undefined ? [] : [wanted])
  })
}

for (const [schema, problem] of [
  [{ $dynamicRef: '#x' }, /a schema\.\$dynamicRef is not supported; use \$ref/],
  [{ properties: { a: { $ref: 'https://x.test/y' } } }, /\.properties\.a\.\$ref leads to "https:\/\/x\.test\/y", which is not in this document/],
  [{ $schema: 'https://x.test/meta' }, /\.\$schema must be a draft/],
  [{ $vocabulary: {} }, /\.\$vocabulary is not supported/],
  [{ allOf: [{ $ref: '#' }] }, /leads back to itself/],
  [{ minLength: -1 }, /\.minLength must be a whole number of at least 0, got -1/],
  [{ multipleOf: 0 }, /\.multipleOf must be more than 0/],
  [{ type: 'strin' }, /\.type must be one of/],
  [{ items: [{}] }, /\.items must be one schema; use prefixItems/],
  [{ dependencies: {} }, /\.dependencies is of an older draft/],
  [{ anyOf: [] }, /\.anyOf must be a list of schemas/],
  [{ properties: { a: { pattern: '(' } } }, /\.properties\.a\.pattern is not a regular expression/],
  [{ $defs: { a: { $anchor: 'x' }, b: { $anchor: 'x' } } }, /\$anchor is the name of another part/],
] as const) {
  test(`a schema ${JSON.stringify(schema)} is refused by name`, () => {
    assert.throws(() => checkSchema(schema as JsonSchema, {}), (error) => {
      return error instanceof TypeError && problem.test(error.message)
    })
  })
}

test('schemas that are nested too deeply, or follow each other in too long a row, are refused', () => {
  let schema: JsonSchema = {}
  for (let i = 0; i < 5_000; i++) schema = { items: schema }
  assert.throws(() => checkSchema(schema, []), /nested more than 64 levels deep/)
  const names = Array.from({ length: 5_000 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }])
  const $defs = { ...Object.fromEntries(names), d5000: {} } as JsonSchema['$defs'] & {}
  assert.throws(() => checkSchema({ $ref: '#/$defs/d0', $defs }, 1), /more than 64 schemas in/)
})

test('what would take too much work is refused, whatever the schema makes of the answer', () => {
  const big = Array.from({ length: 300_000 }, (_, i) => i)
  const items: JsonSchema = { items: { type: 'integer' } }
  const schemas: JsonSchema[] = [items, { not: { not: items } }, { not: items }]
  for (const schema of [...schemas, { uniqueItems: true }]) {
    assert.match(checkSchema(schema, big)[0]!.detail, /too large to be checked/)
  }
})

for (const keyword of ['dependentRequired', 'pattern', 'required', 'uniqueItems']) {
  test(`null counts as absent for ${keyword}, as in requests of stored runs`, () => {
    const schema = { type: 'array', [keyword]: null } as unknown as JsonSchema
    assert.deepEqual(checkSchema(schema, ['a', 'a']), [])
    assert.equal(checkSchema(schema, 'a').length, 1)
  })
}
