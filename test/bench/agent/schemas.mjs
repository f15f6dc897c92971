/**
 * Compares the check of tool arguments with two validators of JSON Schema:
 *
 *     npm install --no-save --prefix test/peers
 *     node test/bench/agent/schemas.mjs [--json FILE]
 *
 * Each contender has its own process, and they take turns. TURNS (default 9) is the number of turns
 * after one to warm up, TURN_MS (default 300) their length. All answer the same of every value,
 * which is asserted before they are measured. runwright is the built package.
 *
 * `ajv` compiles a schema to JavaScript, with `new Function`; the others walk it. It and
 * `@cfworker/json-schema` stop at the first mistake and say what the schema wanted; `checkSchema()`
 * finds them all, and says what came. Bars are ratios of medians.
 */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { rowText, versionsOf, writeResults } from '../report.mjs'

const TURNS = Number(process.env.TURNS ?? 9)
const TURN_MS = Number(process.env.TURN_MS ?? 300)
const NAMES = ['ajv', '@cfworker/json-schema', 'runwright']

/** Arguments of a tool that changes files, as models get and send them. */
const schema = {
  type: 'object',
  properties: {
    path: { type: 'string', minLength: 1, maxLength: 4096, description: 'The file.' },
    edits: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        properties: {
          find: { type: 'string', minLength: 1 },
          replace: { type: 'string' },
          occurrence: { anyOf: [{ type: 'integer', minimum: 1 }, { const: 'all' }] },
        },
        required: ['find', 'replace'],
        additionalProperties: false,
      },
    },
    encoding: { enum: ['utf8', 'latin1'] },
    mode: { type: 'string', pattern: '^0[0-7]{3}$' },
    dry_run: { type: 'boolean' },
  },
  required: ['path', 'edits'],
  additionalProperties: false,
}
const edits = (count) =>
  Array.from({ length: count }, (_, i) => ({
    find: `const value${i} = 1`,
    replace: `const value${i} = 2`,
    ...(i % 2 === 0 ? { occurrence: i % 4 === 0 ? 'all' : 1 } : {}),
  }))
const valid = { path: 'src/cart.ts', edits: edits(3), encoding: 'utf8', mode: '0644' }
const values = {
  valid,
  invalid: { ...valid, edits: [...edits(2), { find: '', replace: 7, occurence: 1 }] },
  large: { ...valid, edits: edits(1000) },
}

const scenarios = [
  { title: 'valid arguments of a tool', value: 'valid', bar: ['@cfworker/json-schema', 0.5] },
  { title: 'invalid arguments, with what is wrong', value: 'invalid', bar: null },
  { title: 'valid arguments with 1000 parts', value: 'large', bar: ['@cfworker/json-schema', 0.5] },
  { title: 'a new schema and its first check', value: 'valid', isNew: true, bar: ['ajv', 0.1] },
]

/**
 * `prepare` makes of a schema a function that answers whether a value is valid; `forget` frees it.
 *
 * @returns {Promise<{ prepare: (one: object) => (value: unknown) => boolean, forget: Function }>}
 */
async function contender(name) {
  const peers = createRequire(new URL('../../peers/package.json', import.meta.url))
  const forget = () => undefined
  switch (name) {
    case 'ajv': {
      const { Ajv2020 } = peers('ajv/dist/2020.js')
      const ajv = new Ajv2020()
      return { prepare: (one) => ajv.compile(one), forget: (one) => ajv.removeSchema(one) }
    }
    case '@cfworker/json-schema': {
      const { Validator } = peers('@cfworker/json-schema')
      const prepare = (one) => {
        const validator = new Validator(one, '2020-12')
        return (value) => validator.validate(value).valid
      }
      return { prepare, forget }
    }
    default: {
      const { checkSchema } = await import(process.env.RUNWRIGHT_AGENT)
      return { prepare: (one) => (value) => checkSchema(one, value).length === 0, forget }
    }
  }
}

/** Answers each message with the microseconds of one operation. */
async function work(name) {
  const { prepare, forget } = await contender(name)
  const check = prepare(schema)
  assert.deepEqual(Object.values(values).map(check), [true, false, true], name)
  process.on('message', ({ value, isNew, ms }) => {
    const given = values[value]
    const count = isNew ? 20 : 100
    let operations = 0
    let time = 0
    while (time < ms) {
      const copies = Array.from({ length: isNew ? count : 0 }, () => structuredClone(schema))
      const began = performance.now()
      if (isNew) for (const copy of copies) prepare(copy)(given)
      else for (let i = 0; i < count; i++) check(given)
      time += performance.now() - began
      copies.forEach(forget)
      operations += count
    }
    process.send({ us: (1000 * time) / operations })
  })
  process.send({})
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]

async function compare() {
  const { values: flags } = parseArgs({ options: { json: { type: 'string' } } })
  const agent = pathToFileURL(join(buildPackage(), 'agent/index.js')).href
  const children = new Map()
  for (const name of NAMES) {
    const env = { ...process.env, RUNWRIGHT_AGENT: agent }
    const child = fork(fileURLToPath(import.meta.url), ['--contender', name], { env, execArgv: [] })
    await once(child, 'message')
    children.set(name, child)
  }
  const rows = []
  for (const { title, value, isNew = false, bar } of scenarios) {
    const figures = new Map(NAMES.map((name) => [name, []]))
    for (let turn = -1; turn < TURNS; turn++) {
      for (const [name, child] of children) {
        const answer = once(child, 'message')
        child.send({ value, isNew, ms: TURN_MS })
        const [{ us }] = await answer
        if (turn >= 0) figures.get(name).push(us)
      }
    }
    console.log(`\n${title}`)
    const medianOf = (name) => median(figures.get(name))
    for (const [name, list] of figures) {
      const own = name === 'runwright' ? bar : null
      const row = {
        scenario: title,
        contender: name,
        median: median(list),
        min: Math.min(...list),
        max: Math.max(...list),
        unit: 'us',
        ratio: name === NAMES[0] ? null : median(list) / medianOf(NAMES[0]),
        cpu: null,
        bar: own && `<= ${own[1].toFixed(2)}x of ${own[0]}`,
        met: own && median(list) <= own[1] * medianOf(own[0]),
      }
      rows.push(row)
      console.log(rowText(row))
    }
  }
  for (const child of children.values()) child.disconnect()
  if (flags.json !== undefined) {
    const versions = versionsOf(['ajv', '@cfworker/json-schema'])
    writeResults(flags.json, { name: 'schemas', versions, rows })
  }
  if (rows.some(({ met }) => met === false)) process.exitCode = 1
}

const at = process.argv.indexOf('--contender')
await (at < 0 ? compare() : work(process.argv[at + 1]))
