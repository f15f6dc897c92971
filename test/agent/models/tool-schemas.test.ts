import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anthropicSchema,
  geminiSchema,
  isStrictSchema,
  openAiSchema,
} from '../../../lib/agent/models/tool-schemas.js'

const either = {
  type: 'object',
  properties: { note: { type: 'string' } },
  oneOf: [
    { properties: { id: { type: 'integer' } }, required: ['id'] },
    { properties: { id: { type: 'string' }, name: { type: 'string' } }, required: ['name'] },
    { $ref: '#/$defs/c' },
  ],
  unevaluatedProperties: false,
  $defs: { c: { properties: { code: { type: 'string' } } } },
}

for (const [name, convert] of [['OpenAI', openAiSchema], ['Anthropic', anthropicSchema]] as const) {
  test(`${name} gets alternatives at the top as open fields, and the rule in words`, () => {
    const { description, parameters } = convert('Pays.', either)
    assert.deepEqual(parameters, {
      type: 'object',
      properties: {
        id: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
        name: { type: 'string' },
        code: { type: 'string' },
        note: { type: 'string' },
      },
      $defs: either.$defs,
    })
    const rules = `oneOf ${JSON.stringify(either.oneOf)}; unevaluatedProperties false`
    assert.equal(description, `Pays. (Must also satisfy: ${rules})`)
  })

  test(`${name} gets other schemas as they are`, () => {
    const schema = {
      type: 'object',
      properties: { a: { oneOf: [{ type: 'number', exclusiveMinimum: 0 }, { type: 'null' }] } },
      additionalProperties: false,
    }
    assert.deepEqual(convert('Pays.', schema), { description: 'Pays.', parameters: schema })
  })
}

test('OpenAI gets lists with items', () => {
  const schema = { type: 'object', properties: { a: { anyOf: [{ type: 'array' }] } } }
  assert.deepEqual(openAiSchema('', schema).parameters, {
    type: 'object',
    properties: { a: { anyOf: [{ type: 'array', items: {} }] } },
  })
})

test('Anthropic gets fields of names that it refuses in words, and allows them', () => {
  const schema = {
    type: 'object',
    properties: { 'a b': { type: 'string' }, c: {} },
    required: ['a b', 'c'],
    additionalProperties: false,
  }
  assert.deepEqual(anthropicSchema('Does.', schema), {
    description:
      'Does. (Must also satisfy: properties {"a b":{"type":"string"}}; required ["a b","c"])',
    parameters: { type: 'object', properties: { c: {} }, required: ['c'] },
  })
})

for (const [schema, expected] of [
  [{ oneOf: [{ type: 'string' }, { type: 'null' }] }, { anyOf: [{ type: 'string' }, { type: 'null' }], description: 'Must also satisfy: exactly one of anyOf' }],
  [{ type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 9 }, { type: 'integer', minimum: 1, maximum: 8 }],
  [{ type: 'number', exclusiveMinimum: 0 }, { type: 'number', minimum: 0, description: 'Must also satisfy: exclusiveMinimum 0' }],
  [{ const: true }, { description: 'Must also satisfy: const true' }],
  [{ enum: ['a', 1] }, { enum: ['a', 1] }],
  [{ enum: ['a', null] }, { description: 'Must also satisfy: enum ["a",null]' }],
  [
    { prefixItems: [{ const: 1 }], items: false },
    { prefixItems: [{ enum: [1] }], description: 'Must also satisfy: items false' },
  ],
  [{ not: { type: 'null' } }, { description: 'Must also satisfy: not {"type":"null"}' }],
  [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }],
  [{ $ref: '#/$defs/a', description: 'An a.' }, { anyOf: [{ $ref: '#/$defs/a' }], description: 'An a.' }],
  [{ type: 'object', patternProperties: { '^x': {} }, additionalProperties: false }, { type: 'object', description: 'Must also satisfy: patternProperties {"^x":{}}; additionalProperties false' }],
  [
    { properties: { a: true, b: false } },
    { properties: { a: {}, b: { description: 'Not allowed: leave it out.' } } },
  ],
  [{ type: 'string', format: 'uri', default: 'x', examples: ['y'] }, { type: 'string' }],
] as const) {
  test(`Gemini gets ${JSON.stringify(schema)} as it can say it, the rest in words`, () => {
    assert.deepEqual(geminiSchema(schema), expected)
  })
}

test('strict mode is for schemas that OpenAI accepts unchanged', () => {
  const of = (part: object): object => ({
    type: 'object', properties: { a: part }, required: ['a'], additionalProperties: false,
  })
  assert.equal(isStrictSchema(of({ type: 'number', exclusiveMinimum: 0, multipleOf: 2 })), true)
  assert.equal(isStrictSchema(of({ type: 'string', format: 'email' })), true)
  assert.equal(isStrictSchema(of({ type: 'string', format: 'uri' })), false)
  assert.equal(isStrictSchema(of({ type: ['object', 'null'], properties: { b: {} } })), false)
  assert.equal(isStrictSchema(of({ oneOf: [{ type: 'string' }] })), false)
  assert.equal(isStrictSchema({ ...of({ type: 'string' }), anyOf: [{}] }), false)
})
