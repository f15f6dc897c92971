import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openService } from '../open-service.js'

const RUN = '01930000-0000-7000-8000-000000000001'

for (const [basePath, path, detail] of [
  ['/agents', '/api/runs', /has the basePath "\/agents", which this path lacks: call it with that/],
  ['/agents', `/api/runs/${RUN}?x=/agents`, /which this path lacks/],
  ['/agents', '/', /which this path lacks/],
  ['', '/agents/api/runs', /has no basePath; mounted at \/agents, it needs .* basePath: '\/agents'/],
  ['', `/a/b/api/runs/${RUN}/abort`, /basePath: '\/a\/b'$/],
  ['/v1', '/v2/api/health', /has the basePath "\/v1"; mounted at \/v2, it needs/],
  ['/agents', '/agents/api/nothing', /there is no such resource; see \/api\/openapi.json$/],
  ['/agents', '/agents/x/api/runs', /mounted at \/agents\/x, it needs/],
  ['', '/nothing', /see \/api\/openapi.json$/],
  ['', '/x/api/nothing', /see \/api\/openapi.json$/],
  ['', '/%3Cscript%3E/api/runs', /see \/api\/openapi.json$/],
  ['', `/${'a'.repeat(65)}/api/runs`, /see \/api\/openapi.json$/],
  ['', '/a/b/c/d/e/api/runs', /see \/api\/openapi.json$/],
  ['', '//api/runs', /see \/api\/openapi.json$/],
] as const) {
  test(`a 404 for ${path.slice(0, 60)} at "${basePath}" says ${detail.source}`, async () => {
    await using opened = await openService({ basePath })
    const { status, json } = await opened.call('GET', path)
    assert.equal(status, 404)
    assert.equal(json.code, 'not_found')
    assert.match(json.detail, detail)
  })
}
