/** Results of runs over the API. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSchema, type AgentEvent, type JsonObject } from 'runwright/agent'
import { RunServiceClient } from 'runwright/server'
import { EVENT_SCHEMAS } from '../../lib/server/describe/event-schemas.js'
import { RUN_DETAILS, RUN_SUMMARY } from '../../lib/server/describe/schemas.js'
import { testProvider } from '../helpers/engine.js'
import { openReal } from './real.js'

const SCHEMA = {
  type: 'object',
  properties: { total: { type: 'number' } },
  required: ['total'],
}
const BODY = { goal: 'result: add 1 and 2', workspace: 'none', result_schema: SCHEMA }

/** A model whose first result is not valid. */
const provider = testProvider((request, n) => {
  if (request.result === undefined) return { text: 'It is 3.' }
  const args: JsonObject = n === 1 ? {} : { total: 3 }
  return { calls: [{ tool: 'give_result', args }] }
})
const engine = { providers: [provider], defaultModel: 'test:m' }

test('a result comes back from the API as its schema says, and as is described', async (t) => {
  const real = await openReal(t, { engine })
  const created = await real.call('POST', '/api/runs', { body: BODY })
  assert.equal(created.status, 201, created.text)
  assert.deepEqual(checkSchema(RUN_DETAILS, created.json), [])
  assert.deepEqual(created.json.result_schema, SCHEMA)
  assert.equal(created.json.result, null)
  const id = created.json.run_id
  const client = RunServiceClient.inProcess(real.service)
  t.after(() => client.close())
  const seen: AgentEvent[] = []
  for await (const event of client.events(id)) seen.push(event)
  for (const event of seen) {
    const schema = EVENT_SCHEMAS[event.kind]
    assert.ok(schema !== undefined, event.kind)
    assert.deepEqual(checkSchema(schema, event), [], event.kind)
  }
  const results = seen.filter(({ kind }) => kind === 'result')
  assert.equal(results.length, 2)
  const details = await client.get(id)
  assert.deepEqual(checkSchema(RUN_DETAILS, details), [])
  assert.deepEqual(details.result, { total: 3 })
  assert.equal(details.answer, 'It is 3.')
  assert.equal(details.cwd, '')
  assert.equal(details.assurance?.by, 'schema')
  const { json: list } = await real.call('GET', '/api/runs')
  assert.deepEqual(checkSchema(RUN_SUMMARY, list[0]), [])
  assert.doesNotMatch(JSON.stringify(list), /result_schema|It is 3/)
})

test('what cannot be had is a 422 that names the field', async (t) => {
  const real = await openReal(t, { engine })
  const deep = JSON.parse(`${'{"type":"object","not":'.repeat(70)}{}${'}'.repeat(70)}`)
  const cases: readonly (readonly [object, string])[] = [
    [{ ...BODY, result_schema: 'x' }, '/result_schema'],
    [{ ...BODY, result_schema: { type: 'array' } }, '/result_schema/type'],
    [{ ...BODY, result_schema: deep as JsonObject }, '/result_schema'],
    [{ ...BODY, cwd: real.root }, '/cwd'],
    [{ goal: 'result: x' }, '/result_schema'],
    [{ goal: 'shell: true', workspace: 'none' }, '/workspace'],
  ]
  for (const [body, pointer] of cases) {
    const { status, json } = await real.call('POST', '/api/runs', { body })
    assert.equal(status, 422, JSON.stringify(json).slice(0, 300))
    assert.deepEqual(json.errors.map((one: { pointer: string }) => one.pointer), [pointer])
  }
  const described = await real.call('GET', '/api/openapi.json')
  const { content } = described.json.paths['/api/runs'].post.requestBody
  assert.ok('result_schema' in content['application/json'].schema.properties)
  const events = await real.call('GET', '/api/asyncapi.json')
  assert.match(events.text, /The model gave the result/)
})

test('a run without a folder says so where files are asked for', async (t) => {
  const real = await openReal(t, { engine })
  const { json } = await real.call('POST', '/api/runs', { body: BODY })
  const path = `/api/runs/${json.run_id}`
  const client = RunServiceClient.inProcess(real.service)
  t.after(() => client.close())
  for await (const _ of client.events(json.run_id)) {
    // until its end
  }
  assert.deepEqual((await real.call('GET', `${path}/checkpoints`)).json, [])
  assert.match((await real.call('GET', `${path}/changes`)).json.note, /has no folder/)
  const calls = [
    ['GET', '/files', undefined],
    ['POST', '/restore', { checkpoint_id: 'a'.repeat(64) }],
    ['POST', '/apply', {}],
    ['POST', '/discard', undefined],
  ] as const
  for (const [method, route, body] of calls) {
    const { status, text } = await real.call(method, path + route, { ...(body && { body }) })
    assert.ok([404, 409].includes(status), `${route}: ${status} ${text}`)
    assert.match(text, /has no folder/)
  }
  const again = await real.call('POST', `${path}/retry`)
  assert.equal(again.status, 201, again.text)
})
