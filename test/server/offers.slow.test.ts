/** Folders to choose from, and what a request would start. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore, MemoryStore } from 'runwright/agent'
import { bearerKeys, RunServiceClient } from 'runwright/server'
import { scratch } from '../helpers/engine.js'
import { openReal } from './real.js'

const KEYS = { ann: 'ann-key-0123456789ab', bob: 'bob-key-0123456789ab' }
const authorize = bearerKeys({
  ann: { key: KEYS.ann, tenant: 'red' },
  bob: { key: KEYS.bob, tenant: 'blue' },
})
const as = (key: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${key}` },
})

/** The path of a list of folders. */
const below = (path: string): string => `/api/folders?path=${encodeURIComponent(path)}`

test('folders are listed one level at a time, from the roots on, and never above', async (t) => {
  const real = await openReal(t)
  mkdirSync(join(real.root, 'ok', 'deep', 'deeper'), { recursive: true })
  for (const name of ['.hidden', 'node_modules', '.git', 'zz'])
    mkdirSync(join(real.root, name))
  const roots = (await real.call('GET', '/api/folders')).json
  assert.deepEqual(roots, {
    path: null, folders: [{ path: real.root, name: real.root }], more: 0, left_out: 0,
  })
  const first = (await real.call('GET', below(real.root))).json
  assert.deepEqual(first.folders.map(({ name }: { name: string }) => name), ['ok', 'zz'])
  assert.equal(first.folders[0].path, join(real.root, 'ok'))
  // Links, hidden folders and dependencies are counted, not named.
  assert.ok(first.left_out >= 3, JSON.stringify(first))
  const relative = (await real.call('GET', below('ok/deep'))).json
  assert.deepEqual(relative.folders, [
    { path: join(real.root, 'ok', 'deep', 'deeper'), name: 'deeper' },
  ])
  for (const path of [real.outside, '/', '..', join(real.root, 'out'), 'gone', 'file']) {
    const { status, json } = await real.call('GET', below(path))
    assert.equal(status, 422, path)
    assert.equal(json.errors[0].pointer, '/path')
  }
  assert.equal((await real.call('GET', '/api/folders?path=')).status, 422)
  assert.equal((await real.call('GET', '/api/folders?depth=9')).status, 422)
})

test('a folder with very many folders is listed in part, which is said', async (t) => {
  const real = await openReal(t)
  for (let i = 0; i < 230; i++) mkdirSync(join(real.root, 'ok', `f${i}`))
  const { folders, more } = (await real.call('GET', below('ok'))).json
  assert.deepEqual([folders.length, more], [200, 30])
})

test('a store is asked about a bounded number of folders', async (t) => {
  const store = new MemoryStore()
  let asked = 0
  store.hasForeignRun = async (folder) => {
    asked += 1
    return /[/]f\d+$/.test(folder)
  }
  const real = await openReal(t, { engine: { store }, service: { authorize } })
  for (let i = 0; i < 1_200; i++) mkdirSync(join(real.root, 'ok', `f${i}`))
  const offer = (await real.call('GET', below('ok'), as(KEYS.ann))).json
  assert.deepEqual([offer.folders.length, offer.left_out, offer.more], [0, 1_000, 200])
  assert.ok(asked <= 1_001, `${asked} queries`)
})

test('folders of other tenants are not named, and those of the store are not there', async (t) => {
  const root = scratch(t)
  for (const name of ['reds', 'blues', 'store'])
    mkdirSync(join(root, name, 'in'), { recursive: true })
  const store = new FileStore({ directory: join(root, 'store') })
  const real = await openReal(t, {
    engine: { store, roots: [root] },
    service: { authorize },
  })
  for (const [name, key] of [['reds', KEYS.ann], ['blues', KEYS.bob]] as const) {
    const body = { goal: 'shell: true', cwd: join(root, name, 'in') }
    assert.equal((await real.call('POST', '/api/runs', { ...as(key), body })).status, 201)
  }
  for (const [key, own, other] of [
    [KEYS.ann, 'reds', 'blues'], [KEYS.bob, 'blues', 'reds'],
  ] as const) {
    const { folders, left_out } = (await real.call('GET', below(root), as(key))).json
    assert.deepEqual(folders.map(({ name }: { name: string }) => name), [own])
    assert.ok(left_out >= 1)
    const refused = await real.call('GET', below(join(root, other)), as(key))
    assert.deepEqual([refused.status, refused.json.code], [403, 'forbidden_cwd'])
    const request = { ...as(key), body: { goal: 'shell: true', cwd: join(root, other) } }
    assert.equal((await real.call('POST', '/api/resolve', request)).status, 403)
  }
  assert.equal((await real.call('GET', below(join(root, 'store')), as(KEYS.ann))).status, 422)
})

test('roots of a principal are what that principal gets', async (t) => {
  const [red, blue] = [scratch(t), scratch(t)]
  const real = await openReal(t, {
    engine: { roots: (principal) => [principal?.tenant === 'red' ? red : blue] },
    service: { authorize },
  })
  const { folders } = (await real.call('GET', '/api/folders', as(KEYS.ann))).json
  assert.deepEqual(folders, [{ path: red, name: red }])
  assert.equal((await real.call('GET', below(blue), as(KEYS.ann))).status, 422)
})

test('what a request would start is told, and nothing is run or stored', async (t) => {
  const real = await openReal(t)
  const folder = join(real.root, 'ok')
  const made = join(folder, 'made')
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'x', scripts: { test: `touch ${made} && node --test` } }),
  )
  mkdirSync(join(folder, 'test'))
  writeFileSync(join(folder, 'test', 'a.test.js'), "require('node:test')('x', () => {})\n")
  const resolve = async (body: object) => await real.call('POST', '/api/resolve', { body })
  const npm = (await resolve({ goal: 'npm-test', cwd: 'ok', max_iterations: 7 })).json
  assert.deepEqual(
    [npm.cwd, npm.workspace, npm.model_name, npm.max_iterations],
    [folder, 'in_place', 'test:m', 7],
  )
  assert.match(npm.goal.command, /npm/)
  assert.ok(npm.goal.protected.length > 0)
  const shell = (await resolve({ goal: 'shell: make all', cwd: 'ok' })).json.goal
  assert.deepEqual([shell.name, shell.command, shell.reporter], ['shell', 'make all', null])
  const node = (await resolve({ goal: 'node-test', cwd: 'ok' })).json.goal
  assert.equal(node.reporter, 'node-test')
  // As a start refuses it, with the field that it names.
  for (const [body, pointer] of [
    [{ goal: 'npm-test', cwd: real.outside }, '/cwd'],
    [{ goal: 'nodetest', cwd: 'ok' }, '/goal'],
    [{ goal: 'shell: true', model_name: 'nobody:x' }, '/model_name'],
    [{ goal: 'shell: true', max_iterations: 0 }, '/max_iterations'],
    [{ goal: 'shell: true', nothing: 1 }, '/nothing'],
  ] as const) {
    const { status, json } = await resolve(body)
    assert.deepEqual([status, json.errors?.[0].pointer], [422, pointer])
  }
  assert.equal(existsSync(made), false)
  assert.deepEqual((await real.call('GET', '/api/runs')).json, [])
})

test('a client gets the folders, what a request would start, and what models cost', async (t) => {
  const real = await openReal(t, { engine: { store: new MemoryStore() } })
  const client = RunServiceClient.inProcess(real.service)
  t.after(() => client.close())
  const { folders } = await client.folders()
  assert.equal(folders[0]?.path, real.root)
  assert.equal((await client.folders('ok')).path, join(real.root, 'ok'))
  assert.equal((await client.resolve({ goal: 'shell: true' })).goal.command, 'true')
  const models = await client.models()
  const program = models.find(({ name }) => name === 'builtin:repair')
  assert.deepEqual([program?.prices, program?.context_window], [null, null])
})

test('a folder that may not be read is a 422, and one below it is left as it is', async (t) => {
  if (process.getuid?.() === 0) return t.skip('root reads everything')
  const real = await openReal(t)
  chmodSync(join(real.root, 'ok'), 0)
  t.after(() => chmodSync(join(real.root, 'ok'), 0o755))
  assert.equal((await real.call('GET', below('ok'))).status, 422)
  symlinkSync('ok', join(real.root, 'more'))
  assert.equal((await real.call('GET', below(real.root))).status, 200)
})
