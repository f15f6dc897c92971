import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MemoryStore } from 'runwright/agent'
import { testRunStore } from 'runwright/agent/testing'
import { programAt } from '../../helpers/programs.js'
import { handleOn } from './shared-memory.js'

const memoryOf = new WeakMap<object, MemoryStore>()
const tornDown: object[] = []

testRunStore(
  'a store that several processes share',
  async () => {
    const memory = new MemoryStore()
    await memory.open()
    const handle = handleOn(memory)
    memoryOf.set(handle, memory)
    return handle
  },
  {
    connect: (store) => Promise.resolve(handleOn(memoryOf.get(store) as MemoryStore)),
    teardown: (store) => void tornDown.push(store),
  },
)

testRunStore('a store that is unavailable', () => Promise.reject(new Error('opened')), {
  skip: 'the database is missing',
})

test('teardown is called once after each test', () => {
  assert.ok(tornDown.length > 40)
  assert.equal(new Set(tornDown).size, tornDown.length)
})

test('a store that violates one part of the contract fails the tests of that part', () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout, status } = spawnSync(
    process.execPath,
    ['--test-reporter=tap', ...programAt('test/agent/testing/broken-stores.ts')],
    { encoding: 'utf8', env, cwd: fileURLToPath(new URL('../../..', import.meta.url)) },
  )
  assert.equal(status, 1)
  const failed = new Map<string, string[]>()
  let names: string[] = []
  for (const line of stdout.split('\n')) {
    const [, indent = '', title = ''] = /^( *)not ok \d+ - (.*)$/.exec(line) ?? []
    if (title === '') continue
    if (indent !== '') names.push(title)
    else {
      failed.set(title.replace(' keeps the contract of RunStore', ''), names)
      names = []
    }
  }
  const expected: readonly (readonly [string, RegExp])[] = [
    ['accepts gaps', /gap|repetition|second beginning/],
    ['stores half of a refused append', /gap within the call/],
    ['ignores the limit of a read', /at most 3 of 10/],
    ['finds keys of other owners', /owner and idempotency key/],
    ['finds runs of all tenants in a folder', /found by their folders/],
    ['ignores the conditions of a list', /of one status/],
    ['deletes nothing', /deleted run is gone/],
    ['keeps working after close', /closed store rejects/],
    ['loses everything in a restart', /survive a restart/],
    ['shares nothing', /visible to another at once/],
  ]
  assert.deepEqual([...failed.keys()], expected.map(([name]) => name))
  for (const [name, title] of expected) {
    assert.ok(
      failed.get(name)?.some((one) => title.test(one)),
      `${name}: ${failed.get(name)?.join('; ')}`,
    )
  }
})
