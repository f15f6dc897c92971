import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowOf, isRunId, Router, type RouteDefinition } from '../../lib/server/router.js'

const RUN = '01930000-0000-7000-8000-000000000001'

function route(method: RouteDefinition['method'], path: string): RouteDefinition {
  return {
    method,
    path,
    access: 'caller',
    produces: [],
    operation: null,
    handle: () => ({ status: 204 }),
  }
}

const router = new Router([
  route('GET', '/'),
  route('GET', '/api/runs'),
  route('POST', '/api/runs'),
  route('GET', '/api/runs/{run_id}'),
  route('DELETE', '/api/runs/{run_id}'),
  route('POST', '/api/runs/{run_id}/resume'),
  route('GET', '/api/runs/{run_id}/files'),
  route('GET', '/api/runs/{run_id}/files/{+path}'),
])

for (const { path, found, parameter = '', rest = '' } of [
  { path: '/', found: 'GET' },
  { path: '/api/runs', found: 'GET POST' },
  { path: `/api/runs/${RUN}`, found: 'GET DELETE', parameter: RUN },
  { path: '/api/runs/anything', found: 'GET DELETE', parameter: 'anything' },
  { path: '/api/runs/%2e%2e', found: 'GET DELETE', parameter: '%2e%2e' },
  { path: `/api/runs/${RUN}/resume`, found: 'POST', parameter: RUN },
  { path: `/api/runs/${RUN}/files`, found: 'GET', parameter: RUN },
  { path: `/api/runs/${RUN}/files/a`, found: 'GET', parameter: RUN, rest: 'a' },
  { path: `/api/runs/${RUN}/files/a//..%2f/`, found: 'GET', parameter: RUN, rest: 'a//..%2f/' },
]) {
  test(`${path} is found and supports ${found}`, () => {
    const match = router.match(path)!
    assert.equal([...match.byMethod.keys()].join(' '), found)
    assert.deepEqual([match.parameter, match.rest], [parameter, rest])
  })
}

for (const path of [
  '',
  '*',
  'api/runs',
  '//api/runs',
  '/api//runs',
  '/api/runs/',
  '/api',
  '/api/',
  '/API/runs',
  '/api/%72uns',
  '/api/runs%2f' + RUN,
  '/api/./runs',
  '/api/x/../runs',
  `/api/runs/${RUN}/`,
  `/api/runs/${RUN}/resume/`,
  `/api/runs/${RUN}/other`,
  `/api/runs//resume`,
  `/api/runs/${RUN}/files/`,
  `/api/runs/${RUN}/files//a`,
  `/api/runs//files/a`,
  '/api/runs\0',
  '/constructor',
  '/__proto__',
]) {
  test(`${JSON.stringify(path)} is not found: paths are compared as sent`, () => {
    assert.equal(router.match(path), null)
  })
}

test('Allow has HEAD wherever it has GET, and OPTIONS always', () => {
  assert.equal(allowOf(router.match('/api/runs')!), 'GET, POST, HEAD, OPTIONS')
  assert.equal(allowOf(router.match(`/api/runs/${RUN}/resume`)!), 'POST, OPTIONS')
})

for (const { id, valid } of [
  { id: RUN, valid: true },
  { id: RUN.toUpperCase().replace('0193', '0193A'), valid: false },
  { id: '01930000-0000-7000-8000-00000000000A', valid: false },
  { id: `${RUN}\n`, valid: false },
  { id: `{${RUN}}`, valid: false },
  { id: RUN.replaceAll('-', ''), valid: false },
  { id: '', valid: false },
]) {
  test(`${JSON.stringify(id)} is ${valid ? 'a valid' : 'an invalid'} run id`, () => {
    assert.equal(isRunId(id), valid)
  })
}
