/** The official test suite of JSON Schema, draft 2020-12. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkSchema, type JsonSchema } from 'runwright/agent'

const suite = process.env['JSON_SCHEMA_SUITE'] ?? '../shared/json-schema-suite'
const folder = join(suite, 'tests/draft2020-12')

interface Group {
  readonly description: string
  readonly schema: JsonSchema | boolean
  readonly tests: readonly Case[]
}

interface Case {
  readonly description: string
  readonly data: unknown
  readonly valid: boolean
}

/** Files about what is refused when a schema is used for the first time. */
const LEFT_OUT: readonly string[] = ['dynamicRef.json', 'refRemote.json', 'vocabulary.json']

const METASCHEMA = 'a reference to another document, the metaschema'
const DYNAMIC = '$dynamicRef'

/** Groups of other files that need the same. Each must be refused: one that passes has to go. */
const REFUSED: Readonly<Record<string, string>> = {
  'defs.json: validate definition against metaschema': METASCHEMA,
  'ref.json: remote ref, containing refs itself': METASCHEMA,
  'unevaluatedItems.json: unevaluatedItems with $dynamicRef': DYNAMIC,
  'unevaluatedProperties.json: unevaluatedProperties with $dynamicRef': DYNAMIC,
}

const files = existsSync(folder)
  ? readdirSync(folder).filter((name) => name.endsWith('.json') && !LEFT_OUT.includes(name))
  : []

const skip = files.length === 0 && `${folder} is missing`

test('the official test suite is there', { skip }, () => {
  assert.ok(files.length >= 40, `only ${files.length} files were found`)
})

const unused = new Set(Object.keys(REFUSED))

for (const file of files) {
  test(`the official test suite: ${file}`, () => {
    const groups = JSON.parse(readFileSync(join(folder, file), 'utf8')) as readonly Group[]
    assert.ok(groups.length > 0)
    for (const { description, schema, tests } of groups) {
      const name = `${file}: ${description}`
      unused.delete(name)
      // The whole of a tool's arguments is an object, so that only parts are booleans.
      const whole = typeof schema === 'boolean' ? { allOf: [schema] } : schema
      for (const { description: about, data, valid } of tests) {
        const check = (): boolean => checkSchema(whole, data).length === 0
        if (Object.hasOwn(REFUSED, name)) assert.throws(check, TypeError, `${name} passes`)
        else assert.equal(check(), valid, `${name}: ${about}`)
      }
    }
  })
}

test('each group that is expected to be refused is in the suite', { skip }, () => {
  assert.deepEqual([...unused], [])
})
