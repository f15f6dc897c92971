import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  APPLY_SCHEMA,
  FORK_SCHEMA,
  MESSAGE_SCHEMA,
  UPDATE_SCHEMA,
  RESTORE_SCHEMA,
  RESUME_SCHEMA,
  START_REQUEST_SCHEMA,
  type JsonSchema,
} from 'runwright/agent'
import { openService } from '../open-service.js'
import { resolveSchema, type ApiDescription, type Operation } from '../conformance.js'

async function describe(basePath = ''): Promise<ApiDescription> {
  await using opened = await openService({ basePath })
  const answer = await opened.call('GET', `${basePath}/api/openapi.json`)
  assert.equal(answer.headers['content-type'], 'application/json')
  return answer.json
}

test('every route of the API is described, and no other', async () => {
  const api = await describe()
  const routes = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((name) => name !== 'parameters')
      .map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(routes.sort(), [
    'DELETE /api/runs/{run_id}',
    'GET /api/asyncapi.json',
    'GET /api/folders',
    'GET /api/goals',
    'GET /api/health',
    'GET /api/models',
    'GET /api/openapi.json',
    'GET /api/runs',
    'GET /api/runs/{run_id}',
    'GET /api/runs/{run_id}/changes',
    'GET /api/runs/{run_id}/check-files',
    'GET /api/runs/{run_id}/checkpoints',
    'GET /api/runs/{run_id}/events',
    'GET /api/runs/{run_id}/files',
    'GET /api/runs/{run_id}/files/{path}',
    'GET /api/runs/{run_id}/images',
    'PATCH /api/runs/{run_id}',
    'POST /api/resolve',
    'POST /api/runs',
    'POST /api/runs/{run_id}/abort',
    'POST /api/runs/{run_id}/apply',
    'POST /api/runs/{run_id}/discard',
    'POST /api/runs/{run_id}/fork',
    'POST /api/runs/{run_id}/messages',
    'POST /api/runs/{run_id}/restore',
    'POST /api/runs/{run_id}/resume',
    'POST /api/runs/{run_id}/retry',
  ])
})

test('requests are described by the schemas that validate them', async () => {
  const api = await describe()
  const body = (path: string, method: 'post' | 'patch' = 'post'): unknown => {
    const { requestBody } = api.paths[path]![method]!
    return resolveSchema(requestBody!.content['application/json']!.schema, api)
  }
  for (const [path, schema, method] of [
    ['/api/runs', START_REQUEST_SCHEMA],
    ['/api/runs/{run_id}/resume', RESUME_SCHEMA],
    ['/api/runs/{run_id}/restore', RESTORE_SCHEMA],
    ['/api/runs/{run_id}/apply', APPLY_SCHEMA],
    ['/api/runs/{run_id}/fork', FORK_SCHEMA],
    ['/api/runs/{run_id}/messages', MESSAGE_SCHEMA],
    ['/api/runs/{run_id}', UPDATE_SCHEMA, 'patch'],
  ] as const) {
    assert.deepEqual(body(path, method), JSON.parse(JSON.stringify(schema)), path)
  }
})

test('bodies of requests have titles, and are no components, where a default reads as present', async () => {
  const { paths, components } = await describe()
  const bodies = Object.values(paths).flatMap(({ parameters: _, ...item }) =>
    Object.values(item as Record<string, Operation>).flatMap((one) => one.requestBody ?? []),
  )
  const schemas = bodies.map(({ content }) => content['application/json']!.schema as JsonSchema)
  // That of a start is also that of what it would start.
  const titles = schemas.map(({ title }) => title).filter((title) => title !== undefined)
  assert.deepEqual(titles.sort(), [
    'ApplyRequest', 'ForkRequest', 'MessageRequest', 'RestoreRequest', 'ResumeRequest',
    'RunStartRequest', 'RunStartRequest', 'RunUpdate',
  ])
  assert.doesNotMatch(JSON.stringify(components), /"default":(?!\{)/)
})

test('each operation has a unique id, a summary, and a description of each response', async () => {
  const api = await describe()
  const ids = new Set<string>()
  for (const [path, item] of Object.entries(api.paths)) {
    const parameters = item.parameters?.map(({ name }) => name) ?? []
    assert.deepEqual(
      parameters,
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
    )
    for (const [method, described] of Object.entries(item)) {
      if (method === 'parameters') continue
      const operation = described as Operation
      assert.ok(operation.summary.length > 0)
      assert.ok(!ids.has(operation.operationId), operation.operationId)
      ids.add(operation.operationId)
      const statuses = Object.keys(operation.responses)
      assert.ok(statuses.some((status) => /^[23]/.test(status)))
      for (const [status, response] of Object.entries(operation.responses)) {
        assert.ok(response.description.length > 0, `${path} ${method} ${status}`)
        for (const { schema } of Object.values(response.content ?? {})) resolveSchema(schema, api)
      }
    }
  }
})

test('the description has the version and the base path of the service', async () => {
  assert.equal((await describe()).openapi, '3.1.0')
  assert.deepEqual((await describe()).servers, [{ url: '/' }])
  assert.deepEqual((await describe('/agents')).servers, [{ url: '/agents' }])
})
