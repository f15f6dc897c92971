/**
 * What a caller can learn of paths that are not its own: nothing, neither whether they exist nor
 * what is there. The table of what takes a path is that of the API's own description.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join, resolve } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, type EngineOptions } from 'runwright/agent'
import { bearerKeys } from 'runwright/server'
import { scratch } from '../../helpers/engine.js'
import type { ApiDescription, Operation } from '../conformance.js'
import type { Answer, CallOptions } from '../open-service.js'
import { openReal } from '../real.js'

const ANN = 'ann-key-0123456789'
const BOB = 'bob-key-0123456789'
const authorize = bearerKeys({ ann: { key: ANN, tenant: 'a' }, bob: { key: BOB, tenant: 'b' } })

type Request = readonly [method: string, target: string, body?: object]

/** What names a folder in which a run may work. */
const FOLDERS: Readonly<Record<string, (path: string, runId: string) => Request>> = {
  'GET /api/folders path': (path) => ['GET', `/api/folders?path=${encodeURIComponent(path)}`],
  'POST /api/resolve cwd': (cwd) => ['POST', '/api/resolve', { goal: 'shell: true', cwd }],
  'POST /api/runs cwd': (cwd) => ['POST', '/api/runs', { goal: 'shell: true', cwd }],
  'POST /api/runs/{run_id}/fork cwd': (cwd, runId) => [
    'POST', `/api/runs/${runId}/fork`, { cwd, workspace: 'in_place' },
  ],
}

/** What names a file in the folder of a run. */
const FILES: Readonly<Record<string, (path: string, runId: string) => readonly Request[]>> = {
  'GET /api/runs/{run_id}/files/{path} path': (path, runId) =>
    ['now', 'newest'].map((at) => ['GET', `/api/runs/${runId}/files/${path}?at=${at}`]),
  'POST /api/runs/{run_id}/apply paths': (path, runId) => [
    ['POST', `/api/runs/${runId}/apply`, { paths: [path], dry_run: true }],
  ],
}

/**
 * Names that lead nowhere: a condition of a list, files whose content is in the request, and paths
 * that are compared with those of checkpoints.
 */
const OTHERS = [
  'GET /api/runs cwd', 'POST /api/resolve holdout.files', 'POST /api/runs holdout.files',
  'POST /api/runs/{run_id}/restore paths',
]

/** The inputs whose names are those of paths, by their operations. */
function pathInputs(api: ApiDescription): string[] {
  const isPath = (name: string): boolean => /cwd|path|folder|director|files?$/.test(name)
  return Object.entries(api.paths).flatMap(([path, { parameters: shared = [], ...item }]) =>
    Object.entries(item as Record<string, Operation>).flatMap(([method, operation]) => {
      const { parameters = [], requestBody } = operation
      const body = requestBody?.content['application/json']?.schema
      const names = [...shared, ...parameters].map(({ name }) => name).concat(fieldsOf(body))
      return names.filter(isPath).map((name) => `${method.toUpperCase()} ${path} ${name}`)
    }),
  )
}

function fieldsOf(schema: unknown): string[] {
  const { properties = {} } = (schema ?? {}) as { properties?: Record<string, unknown> }
  return Object.entries(properties).flatMap(([name, part]) => [
    name, ...fieldsOf(part).map((inner) => `${name}.${inner}`),
  ])
}

/** Two folders of two tenants; the second has links to all that is in the first. */
async function openWorld(t: TestContext, roots: (top: string) => EngineOptions['roots']): Promise<{
  readonly top: string
  readonly runId: string
  ask(request: Request): Promise<Answer>
}> {
  const top = scratch(t)
  const [ann, bob] = [join(top, 'ann'), join(top, 'bob')]
  for (const folder of ['ann/work/deep', 'bob/work', 'store'])
    fs.mkdirSync(join(top, folder), { recursive: true })
  for (const folder of [join(ann, 'work'), bob]) fs.writeFileSync(join(folder, 'file'), 'x')
  for (const [name, target] of Object.entries(LINKS))
    fs.symlinkSync(target.replace('TOP', top), join(bob, name))
  const store = new FileStore({ directory: join(top, 'store') })
  const real = await openReal(t, { service: { authorize }, engine: { store, roots: roots(top) } })
  const as = (key: string, body?: object): CallOptions => {
    const headers = { authorization: `Bearer ${key}` }
    return body === undefined ? { headers } : { headers, body }
  }
  const start = async (key: string, cwd: string): Promise<string> => {
    const begun = await real.call('POST', '/api/runs', as(key, { goal: 'shell: true', cwd }))
    assert.equal(begun.status, 201, begun.text)
    const { run_id } = begun.json
    const query = `/api/runs/${run_id}/events?after=0`
    await real.call('GET', query, { headers: { ...as(key).headers, accept: 'text/event-stream' } })
    return run_id as string
  }
  await start(ANN, join(ann, 'work'))
  return {
    top,
    runId: await start(BOB, bob),
    ask: async ([method, target, body]) => await real.call(method, target, as(BOB, body)),
  }
}

/** What Bob's folder has. */
const LINKS: Readonly<Record<string, string>> = {
  own: 'work',
  'own-by-name': 'TOP/bob/work',
  'own-loop': 'own-loop',
  'own-none': 'work/none',
  'to-folder': '../ann/work',
  'to-file': 'TOP/ann/work/file',
  'to-none': 'TOP/ann/work/none',
  'to-none-deep': 'TOP/ann/work/none/deep',
  'to-folder-by-link': 'to-folder',
  'to-none-by-link': 'to-none',
  'out-folder': '/usr',
  'out-none': '/no-such-folder',
  'out-none-by-link': 'out-none',
  'out-and-back': '/usr/../TOP/bob/work',
  'out-none-and-back': '/no-such-folder/../TOP/bob/work',
  'to-store': '../store',
  'to-store-none': '../store/none',
}

/** What is seen of an answer about a path, but for what names the path or the request. */
function seen({ status, headers, text }: Answer, names: readonly string[]): unknown {
  const { date: _, 'x-request-id': id, 'content-length': __, ...others } = headers
  const plain = names.reduce((shown, name) => shown.replaceAll(name, 'PATH'), text)
  return { status, headers: others, text: plain.replaceAll(String(id), 'REQUEST') }
}

/** What must be the same for Bob, and the status that it has. */
interface Group {
  readonly status: number
  readonly code: string
  readonly paths: readonly string[]
}

const ELSEWHERE = [
  '/', '/usr', '/usr/bin', '/etc/passwd', '/etc/passwd/none', '/no-such-folder', '/no-such/folder',
  'out-folder', 'out-none', 'out-none-by-link', 'out-and-back', 'out-none-and-back',
  'out-folder/bin', 'out-folder/none',
]
const STORE = ['TOP/store', 'TOP/store/none', 'TOP/store/lock', 'to-store', 'to-store-none']
const FOREIGN = [
  'TOP/ann/work', 'TOP/ann/work/deep', 'TOP/ann/work/none', 'TOP/ann/work/none/deep',
  'TOP/ann/work/file', 'TOP/ann/work/file/none', '../ann/work', '../ann/work/none', 'to-folder',
  'to-file', 'to-none', 'to-none-deep', 'to-folder-by-link', 'to-none-by-link', 'to-folder/deep',
  'to-folder/none', 'to-file/none',
]
const OUTSIDE = { status: 422, code: 'invalid_request' }

/** By where tenants may work. */
const WORLDS: readonly (readonly [string, (top: string) => EngineOptions['roots'], Group[]])[] = [
  [
    'in one root',
    (top) => [top],
    [
      { ...OUTSIDE, paths: [...ELSEWHERE, ...STORE] },
      { status: 403, code: 'forbidden_cwd', paths: [...FOREIGN, 'TOP/ann'] },
    ],
  ],
  [
    'in roots of their own',
    (top) => (principal) => [join(top, principal?.tenant === 'b' ? 'bob' : 'ann')],
    [
      {
        ...OUTSIDE,
        paths: [...ELSEWHERE, ...STORE, ...FOREIGN, 'TOP/ann', 'TOP', 'TOP/none', '..', '../none'],
      },
    ],
  ],
]

test('all that takes a path is in the table', async (t) => {
  const { ask } = await openWorld(t, (top) => [top])
  const api = (await ask(['GET', '/api/openapi.json'])).json as ApiDescription
  const known = [...Object.keys(FOLDERS), ...Object.keys(FILES), ...OTHERS]
  assert.deepEqual(pathInputs(api).sort(), known.sort())
})

for (const [where, roots, groups] of WORLDS) {
  test(`paths of others get one answer, whatever is there: tenants ${where}`, async (t) => {
    const { top, runId, ask } = await openWorld(t, roots)
    for (const [what, request] of Object.entries(FOLDERS)) {
      for (const { status, code, paths } of groups) {
        const answers = new Map<string, string[]>()
        for (const given of paths) {
          // A name begins at Bob's folder.
          const path = resolve(join(top, 'bob'), given.replace('TOP', top))
          const answer = await ask(request(path, runId))
          const key = JSON.stringify(seen(answer, [`${path} is`]))
          answers.set(key, [...(answers.get(key) ?? []), given])
        }
        assert.equal(answers.size, 1, `${what}: ${JSON.stringify([...answers], null, 1)}`)
        const [only] = answers.keys()
        assert.ok(only!.includes(`"status":${status}`) && only!.includes(code), `${what}: ${only}`)
      }
    }
  })

  test(`of their own paths callers hear what is there: tenants ${where}`, async (t) => {
    const { top, runId, ask } = await openWorld(t, roots)
    const own = (name: string): string => join(top, 'bob', name)
    for (const [what, request] of Object.entries(FOLDERS)) {
      const details = async (name: string): Promise<unknown> => {
        const { status, json } = await ask(request(own(name), runId))
        return [status, json.errors?.[0].detail.replace(own(name), 'PATH')]
      }
      assert.deepEqual(await details('none'), [422, 'PATH does not exist'], what)
      assert.deepEqual(await details('own-none'), [422, 'PATH does not exist'], what)
      assert.deepEqual(await details('own-loop'), [422, 'PATH does not exist'], what)
      assert.deepEqual(await details('file'), [422, 'PATH is not a directory'], what)
      for (const name of ['work', 'own', 'own-by-name']) {
        const [status] = (await details(name)) as [number]
        assert.ok([200, 201, 409].includes(status), `${what} ${name}: ${status}`)
      }
    }
  })

  test(`a link in the folder of a run tells nothing: tenants ${where}`, async (t) => {
    const { runId, ask } = await openWorld(t, roots)
    for (const [what, requests] of Object.entries(FILES)) {
      const answers = new Map<string, string[]>()
      for (const name of Object.keys(LINKS).filter((link) => /^(to|out)-/.test(link))) {
        for (const [i, request] of requests(name, runId).entries()) {
          const key = JSON.stringify([i, seen(await ask(request), [name])])
          answers.set(key, [...(answers.get(key) ?? []), name])
        }
      }
      const shown = JSON.stringify([...answers], null, 1)
      assert.equal(answers.size, requests('', runId).length, `${what}: ${shown}`)
    }
  })
}

test('the file system is not asked about a path outside the roots', async (t) => {
  const { top, runId, ask } = await openWorld(t, WORLDS[1]![1])
  const looked: string[] = []
  const restore: (() => void)[] = []
  for (const holder of [fs, fs.promises] as unknown as Record<string, unknown>[]) {
    for (const [name, original] of Object.entries(holder)) {
      const isLook = /^(access|exists|l?stat|open|read|real)/.test(name)
      if (!isLook || typeof original !== 'function') continue
      holder[name] = Object.assign((path: unknown, ...rest: unknown[]): unknown => {
        looked.push(String(path))
        return original.call(holder, path, ...rest) as unknown
      }, original)
      restore.push(() => (holder[name] = original))
    }
  }
  syncBuiltinESMExports()
  const statuses = new Set<number>()
  try {
    const paths = ['TOP/ann/work', 'TOP/ann/none', '/usr', '/no-such-folder', ...Object.keys(LINKS)]
    for (const given of paths.filter((path) => !path.startsWith('own'))) {
      const path = resolve(join(top, 'bob'), given.replace('TOP', top))
      for (const request of Object.values(FOLDERS)) {
        statuses.add((await ask(request(path, runId))).status)
      }
    }
  } finally {
    for (const undo of restore) undo()
    syncBuiltinESMExports()
  }
  assert.ok(looked.includes(join(top, 'bob')), 'what is looked at is seen')
  const elsewhere = [join(top, 'ann'), '/usr', '/no-such-folder']
  assert.deepEqual(looked.filter((path) => elsewhere.some((one) => path.startsWith(one))), [])
  assert.deepEqual([...statuses], [422])
})

test('a root may be named as the host has named it, or by its real path', async (t) => {
  const { top, runId, ask } = await openWorld(t, (root) => {
    fs.symlinkSync('bob', join(root, 'named'))
    fs.symlinkSync('bob', join(root, 'unnamed'))
    return (principal) => [join(root, principal?.tenant === 'b' ? 'named' : 'ann')]
  })
  for (const [name, status] of [['named', 200], ['bob', 200], ['unnamed', 422]] as const) {
    for (const path of [join(top, name), join(top, name, 'work')]) {
      const answer = await ask(FOLDERS['GET /api/folders path']!(path, runId))
      assert.equal(answer.status, status, path)
    }
  }
})

test('a caller without a tenant may name a root by any link', async (t) => {
  const real = await openReal(t)
  const link = join(scratch(t), 'link')
  fs.symlinkSync(real.root, link)
  const body = { goal: 'shell: true', cwd: join(link, 'ok') }
  const resolved = await real.call('POST', '/api/resolve', { body })
  assert.equal(resolved.json.cwd, join(real.root, 'ok'))
  for (const name of ['out', 'out/none']) {
    const outside = { body: { ...body, cwd: join(link, name) } }
    const answer = await real.call('POST', '/api/resolve', outside)
    assert.match(answer.json.detail, /is outside the roots/)
  }
})

test('lists know nothing of the trees and folders of others', async (t) => {
  const { top, ask } = await openWorld(t, (root) => [root])
  const other = '01890000-0000-7000-8000-000000000000'
  const list = async (query: string): Promise<Answer> => await ask(['GET', `/api/runs?${query}`])
  const none = seen(await list(`root=${other}`), [])
  for (const cwd of [join(top, 'ann/work'), join(top, 'ann/none')])
    assert.deepEqual(seen(await list(`cwd=${encodeURIComponent(cwd)}`), []), none)
})
