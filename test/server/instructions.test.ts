/** Instructions over the API. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkSchema } from 'runwright/agent'
import { ProblemError } from 'runwright/server'
import { RUN_DETAILS, RUN_SUMMARY } from '../../lib/server/describe/schemas.js'
import { openReal } from './real.js'

test('details have the instructions, as described; lists have none', async (t) => {
  const real = await openReal(t)
  writeFileSync(join(real.root, 'AGENTS.md'), 'Use tabs.\n')
  const body = { goal: 'shell: true', cwd: join(real.root, 'ok'), instructions: 'Be kind.' }
  const created = await real.call('POST', '/api/runs', { body })
  assert.equal(created.status, 201, created.text)
  const { json: details } = await real.call('GET', `/api/runs/${created.json.run_id}`)
  for (const shown of [created.json, details]) {
    assert.deepEqual(checkSchema(RUN_DETAILS, shown), [])
    assert.equal(shown.instructions, 'Be kind.')
    assert.deepEqual(shown.project_instructions, {
      path: '../AGENTS.md', text: 'Use tabs.\n', bytes: 10, truncated: false,
    })
  }
  const { json: list } = await real.call('GET', '/api/runs')
  assert.deepEqual(checkSchema(RUN_SUMMARY, list[0]), [])
  assert.doesNotMatch(JSON.stringify(list), /instructions|Be kind|Use tabs/)
  const described = await real.call('GET', '/api/openapi.json')
  const { content } = described.json.paths['/api/runs'].post.requestBody
  for (const field of ['instructions', 'project_instructions'])
    assert.ok(field in content['application/json'].schema.properties, field)
})

test('what the functions of the host throw is a 500 without a word of it, or its problem', async (t) => {
  const errors = [
    new Error('no table customers'),
    new ProblemError(403, 'unpaid', 'pay your bill'),
  ]
  const instructions = (): never => {
    throw errors.shift()!
  }
  const real = await openReal(t, { engine: { instructions } })
  const body = { goal: 'shell: true' }
  const fault = await real.call('POST', '/api/runs', { body })
  assert.deepEqual([fault.status, fault.json.code], [500, 'internal_error'])
  assert.doesNotMatch(fault.text, /customers/)
  const problem = await real.call('POST', '/api/runs', { body })
  assert.deepEqual([problem.status, problem.json.code], [403, 'unpaid'])
  assert.deepEqual((await real.call('GET', '/api/runs')).json, [])
})
