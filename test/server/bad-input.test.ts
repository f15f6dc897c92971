import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, after, test } from 'node:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { MemoryStore } from 'runwright/agent'
import { untilAborted } from '../helpers/abort.js'
import { testProvider } from '../helpers/engine.js'
import { openService, type CallOptions, type Opened } from './open-service.js'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-test-')))
const root = join(folder, 'root')
const outside = join(folder, 'outside')
mkdirSync(join(root, 'ok'), { recursive: true })
mkdirSync(outside)
writeFileSync(join(root, 'file'), 'x')
symlinkSync(outside, join(root, 'out'))
symlinkSync(join(outside, 'nowhere'), join(root, 'dangling'))

let opened: Opened
let runId = ''
before(async () => {
  const waiting = testProvider(
    ({ signal }) =>
      untilAborted(signal),
  )
  opened = await openService({
    engine: {
      store: new MemoryStore(),
      roots: [root],
      providers: [waiting],
      defaultModel: 'test:m',
    },
  })
  runId = (await opened.call('POST', '/api/runs', { body: { goal: 'shell: false' } })).json.run_id
})
after(async () => {
  await opened[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const start = (body: object): CallOptions => ({ body: { goal: 'shell: true', ...body } })
const unknown = '01930000-0000-7000-8000-00000000ffff'

for (const {
  name,
  method = 'POST',
  path = '/api/runs',
  send,
  status,
  code = 'invalid_request',
  pointer,
} of [
  { name: 'a start without a goal', send: { body: {} }, status: 422, pointer: '/goal' },
  { name: 'an empty goal', send: start({ goal: '' }), status: 422, pointer: '/goal' },
  { name: 'a blank goal', send: start({ goal: ' \n' }), status: 422, pointer: '/goal' },
  { name: 'a goal that is a number', send: start({ goal: 7 }), status: 422, pointer: '/goal' },
  {
    name: 'a goal of more than 32 KiB',
    send: start({ goal: 'x'.repeat(32_769) }),
    status: 422,
    pointer: '/goal',
  },
  { name: 'a goal with NUL', send: start({ goal: 'shell: a\0b' }), status: 422, pointer: '/goal' },
  {
    name: 'free text without a check',
    send: start({ goal: 'make it nice' }),
    status: 422,
    code: 'goal_not_verifiable',
    pointer: '/goal',
  },
  {
    name: 'a goal that this folder has no check for',
    send: start({ goal: 'cargo-test' }),
    status: 422,
    code: 'goal_unsuitable',
    pointer: '/goal',
  },
  {
    name: 'a misspelt field',
    send: start({ hitl_enable: true }),
    status: 422,
    pointer: '/hitl_enable',
  },
  {
    name: 'a field named __proto__',
    send: {
      body: '{"goal":"shell: true","__proto__":{}}',
      headers: { 'content-type': 'application/json' },
    },
    status: 422,
    pointer: '/__proto__',
  },
  {
    name: 'hitl_enabled as text',
    send: start({ hitl_enabled: 'false' }),
    status: 422,
    pointer: '/hitl_enabled',
  },
  {
    name: 'max_iterations 0',
    send: start({ max_iterations: 0 }),
    status: 422,
    pointer: '/max_iterations',
  },
  {
    name: 'max_iterations 1001',
    send: start({ max_iterations: 1001 }),
    status: 422,
    pointer: '/max_iterations',
  },
  {
    name: 'max_iterations 1.5',
    send: start({ max_iterations: 1.5 }),
    status: 422,
    pointer: '/max_iterations',
  },
  {
    name: 'max_iterations as text',
    send: start({ max_iterations: '20' }),
    status: 422,
    pointer: '/max_iterations',
  },
  {
    name: 'an unknown approval',
    send: start({ approval: 'sometimes' }),
    status: 422,
    pointer: '/approval',
  },
  {
    name: 'metadata that is not text',
    send: start({ metadata: { a: 1 } }),
    status: 422,
    pointer: '/metadata/a',
  },
  {
    name: 'a negative budget',
    send: start({ max_total_tokens: -1 }),
    status: 422,
    pointer: '/max_total_tokens',
  },
  {
    name: 'an unknown model',
    send: start({ model_name: 'nobody:nothing' }),
    status: 422,
    pointer: '/model_name',
  },
  { name: 'an empty model', send: start({ model_name: '' }), status: 422, pointer: '/model_name' },
  {
    name: 'a folder outside the roots',
    send: start({ cwd: outside }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a folder outside by dots',
    send: start({ cwd: `${root}/ok/../../outside` }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a link out of the roots',
    send: start({ cwd: join(root, 'out') }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a dangling link',
    send: start({ cwd: join(root, 'dangling') }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a file as the folder',
    send: start({ cwd: join(root, 'file') }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a missing folder',
    send: start({ cwd: join(root, 'nowhere') }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a folder beside a root',
    send: start({ cwd: `${root}-x` }),
    status: 422,
    pointer: '/cwd',
  },
  {
    name: 'a list as the start request',
    send: { body: '[]', headers: { 'content-type': 'application/json' } },
    status: 422,
    pointer: '',
  },
  {
    name: 'null as the start request',
    send: { body: 'null', headers: { 'content-type': 'application/json' } },
    status: 422,
    pointer: '/goal',
  },
  {
    name: 'a deeply nested body',
    send: {
      body: `{"goal":"x","metadata":${'['.repeat(100)}${']'.repeat(100)}}`,
      headers: { 'content-type': 'application/json' },
    },
    status: 422,
    pointer: '/metadata',
  },
  {
    name: 'an Idempotency-Key with a space',
    send: { ...start({}), headers: { 'idempotency-key': 'a b' } },
    status: 422,
    pointer: '/idempotency-key',
  },
  {
    name: 'an empty Idempotency-Key',
    send: { ...start({}), headers: { 'idempotency-key': '' } },
    status: 422,
    pointer: '/idempotency-key',
  },

  {
    name: 'an answer without a decision',
    path: '/api/runs/{run}/resume',
    send: { body: {} },
    status: 422,
    pointer: '/decision',
  },
  {
    name: 'an answer without a body',
    path: '/api/runs/{run}/resume',
    send: {},
    status: 422,
    pointer: '/decision',
  },
  {
    name: 'an unknown decision',
    path: '/api/runs/{run}/resume',
    send: { body: { decision: 'yes' } },
    status: 422,
    pointer: '/decision',
  },
  {
    name: 'a decision in capitals',
    path: '/api/runs/{run}/resume',
    send: { body: { decision: 'Approve' } },
    status: 422,
    pointer: '/decision',
  },
  {
    name: 'true as the decision',
    path: '/api/runs/{run}/resume',
    send: { body: { decision: true } },
    status: 422,
    pointer: '/decision',
  },
  {
    name: 'a misspelt field of an answer',
    path: '/api/runs/{run}/resume',
    send: { body: { decision: 'approve', gateid: 'x' } },
    status: 422,
    pointer: '/gateid',
  },
  {
    name: 'an edit of an unknown form',
    path: '/api/runs/{run}/resume',
    send: { body: { decision: 'approve', edits: { c1: { arg: {} } } } },
    status: 422,
    pointer: '/edits/c1/arg',
  },
  {
    name: 'an answer to a run that is not waiting',
    path: '/api/runs/{run}/resume',
    send: { body: { decision: 'approve' } },
    status: 409,
    code: 'not_waiting',
  },
  {
    name: 'an abort with fields',
    path: '/api/runs/{run}/abort',
    send: { body: { force: true } },
    status: 422,
    pointer: '/force',
  },
  {
    name: 'a retry with fields',
    path: '/api/runs/{run}/retry',
    send: { body: { goal: 'x' } },
    status: 422,
    pointer: '/goal',
  },
  {
    name: 'the deletion of a live run',
    method: 'DELETE',
    path: '/api/runs/{run}',
    send: {},
    status: 409,
    code: 'run_live',
  },

  {
    name: 'an unknown status',
    method: 'GET',
    path: '/api/runs?status=done',
    send: {},
    status: 422,
    pointer: '/status',
  },
  {
    name: 'a role that the list does not filter by',
    method: 'GET',
    path: '/api/runs?role=attempt',
    send: {},
    status: 422,
    pointer: '/role',
  },
  {
    name: 'two roots',
    method: 'GET',
    path: '/api/runs?root=a&root=b',
    send: {},
    status: 422,
    pointer: '/root',
  },
  {
    name: 'a limit of 0',
    method: 'GET',
    path: '/api/runs?limit=0',
    send: {},
    status: 422,
    pointer: '/limit',
  },
  {
    name: 'a limit above the maximum',
    method: 'GET',
    path: '/api/runs?limit=10001',
    send: {},
    status: 422,
    pointer: '/limit',
  },
  {
    name: 'a limit that is not a number',
    method: 'GET',
    path: '/api/runs?limit=1e3',
    send: {},
    status: 422,
    pointer: '/limit',
  },
  {
    name: 'two limits',
    method: 'GET',
    path: '/api/runs?limit=1&limit=2',
    send: {},
    status: 422,
    pointer: '/limit',
  },
  {
    name: 'an invalid date',
    method: 'GET',
    path: '/api/runs?created_after=yesterday',
    send: {},
    status: 422,
    pointer: '/created_after',
  },
  {
    name: 'the 31st of February',
    method: 'GET',
    path: '/api/runs?created_after=2026-02-31T00:00:00Z',
    send: {},
    status: 422,
    pointer: '/created_after',
  },
  {
    name: 'a time without its zone',
    method: 'GET',
    path: '/api/runs?created_before=2026-01-01T00:00:00',
    send: {},
    status: 422,
    pointer: '/created_before',
  },
  {
    name: 'an unknown end reason',
    method: 'GET',
    path: '/api/runs?end_reason=bored',
    send: {},
    status: 422,
    pointer: '/end_reason',
  },
  {
    name: 'an unknown order',
    method: 'GET',
    path: '/api/runs?sort=goal',
    send: {},
    status: 422,
    pointer: '/sort',
  },
  {
    name: 'more names than metadata has',
    method: 'GET',
    path: `/api/runs?${Array.from({ length: 33 }, (_, i) => `metadata.n${i}=x`).join('&')}`,
    send: {},
    status: 422,
    pointer: '/metadata',
  },
  {
    name: 'the cursor of another order',
    method: 'GET',
    path: `/api/runs?sort=created_at&cursor=${Buffer.from('[1,"x"]').toString('base64url')}`,
    send: {},
    status: 422,
    pointer: '/cursor',
  },
  {
    name: 'an unknown cursor',
    method: 'GET',
    path: '/api/runs?cursor=nonsense',
    send: {},
    status: 422,
    pointer: '/cursor',
  },
] as {
  name: string
  method?: string
  path?: string
  send: CallOptions
  status: number
  code?: string
  pointer?: string
}[]) {
  const where = pointer === undefined ? '' : ` at "${pointer}"`
  test(`${name} is ${status} ${code}${where}`, async () => {
    const answer = await opened.call(method, path.replace('{run}', runId), send)
    assert.equal(answer.status, status, answer.text)
    assert.equal(answer.headers['content-type'], 'application/problem+json')
    assert.equal(answer.json.status, status)
    assert.equal(answer.json.code, code, answer.text)
    assert.ok(answer.json.detail.length > 0 && answer.json.title.length > 0)
    if (pointer !== undefined)
      assert.ok(
        answer.json.errors.some((error: { pointer: string }) => error.pointer === pointer),
        answer.text,
      )
    assert.deepEqual(opened.errors, [])
  })
}

for (const id of [
  unknown,
  'nonsense',
  unknown.toUpperCase(),
  `${unknown}%00`,
  '%2e%2e%2fruns',
  '..',
  '%',
  '{run_id}',
  'ü',
  unknown.replace('-', '%2d'),
]) {
  test(`the run id ${JSON.stringify(id)} is 404 on every route`, async () => {
    for (const [method, action] of [
      ['GET', ''],
      ['HEAD', ''],
      ['DELETE', ''],
      ['GET', '/events'],
      ['POST', '/resume'],
      ['POST', '/abort'],
      ['POST', '/retry'],
    ] as const) {
      const body = action === '/resume' ? { decision: 'approve' } : undefined
      const path = `/api/runs/${encodeURI(id).replaceAll('%25', '%')}${action}`
      const answer = await opened.call(method, path, body === undefined ? {} : { body })
      assert.equal(answer.status, 404, `${method} ${path}`)
    }
    assert.deepEqual(opened.errors, [])
  })
}

for (const { method, path, allow } of [
  { method: 'PUT', path: '/api/runs', allow: 'POST, GET, HEAD, OPTIONS' },
  { method: 'DELETE', path: '/api/runs', allow: 'POST, GET, HEAD, OPTIONS' },
  { method: 'PUT', path: '/api/runs/{run}', allow: 'GET, PATCH, DELETE, HEAD, OPTIONS' },
  { method: 'POST', path: '/api/runs/{run}', allow: 'GET, PATCH, DELETE, HEAD, OPTIONS' },
  { method: 'GET', path: '/api/runs/{run}/resume', allow: 'POST, OPTIONS' },
  { method: 'HEAD', path: '/api/runs/{run}/abort', allow: 'POST, OPTIONS' },
  { method: 'GET', path: '/api/runs/{run}/retry', allow: 'POST, OPTIONS' },
  { method: 'POST', path: '/api/runs/{run}/events', allow: 'GET, HEAD, OPTIONS' },
  { method: 'POST', path: '/api/health', allow: 'GET, HEAD, OPTIONS' },
  { method: 'DELETE', path: '/', allow: 'GET, HEAD, OPTIONS' },
  { method: 'TRACE', path: '/api/models', allow: 'GET, HEAD, OPTIONS' },
]) {
  test(`${method} ${path} is 405 with Allow: ${allow}`, async () => {
    const answer = await opened.call(method, path.replace('{run}', runId))
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.allow, allow)
    if (method !== 'HEAD') assert.equal(answer.json.code, 'method_not_allowed')
  })
}

for (const path of [
  '/api/runs',
  '/api/runs/{run}',
  '/api/runs/{run}/events',
  '/api/models',
  '/api/health',
  '/api/openapi.json',
]) {
  test(`${path} is not available as an image: 406`, async () => {
    const answer = await opened.call('GET', path.replace('{run}', runId), {
      headers: { accept: 'image/png' },
    })
    assert.equal(answer.status, 406)
    assert.equal(answer.json.code, 'not_acceptable')
  })
}

for (const path of [
  '/api/runs',
  '/api/runs/{run}',
  '/api/models',
  '/api/goals',
  '/api/health',
  '/api/openapi.json',
  '/',
]) {
  test(`HEAD ${path} returns the headers of GET without the content`, async () => {
    const get = await opened.call('GET', path.replace('{run}', runId))
    const head = await opened.call('HEAD', path.replace('{run}', runId))
    assert.equal(head.status, 200)
    assert.equal(head.text, '')
    assert.equal(head.headers['content-type'], get.headers['content-type'])
    assert.equal(head.headers['content-length'], get.headers['content-length'])
  })
}

test('a body over 1 MiB is 413', async () => {
  const body = JSON.stringify({ goal: 'shell: true', metadata: { a: 'x'.repeat(1_048_576) } })
  const answer = await opened.call('POST', '/api/runs', {
    body,
    headers: { 'content-type': 'application/json' },
  })
  assert.equal(answer.status, 413)
  assert.equal(answer.json.code, 'body_too_large')
})
