import assert from 'node:assert/strict'
import fs, { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { removeTree } from '../../../lib/agent/workspace/remove-tree.js'

test('a folder that others go on filling, ever deeper, is given up after a bounded time', (t) => {
  const top = mkdtempSync(join(tmpdir(), 'remove-'))
  t.after(() => rmSync(top, { recursive: true, force: true }))
  const folder = join(top, 'copy')
  const deep = join(folder, ...Array.from({ length: 66 }, () => 'd'))
  mkdirSync(deep, { recursive: true })
  // Each time when it is to be removed, there is something new in it that has to be moved up.
  const { rmdirSync } = fs
  let attempts = 0
  t.mock.method(fs, 'rmdirSync', (path: string) => {
    if (String(path) === folder && (attempts += 1) < 1_000) mkdirSync(deep, { recursive: true })
    rmdirSync(path)
  })
  t.mock.method(Atomics, 'wait', () => 'timed-out')
  syncBuiltinESMExports()
  try {
    assert.throws(() => removeTree(folder), /still being written to/)
  } finally {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  }
  assert.ok(attempts < 100, `${attempts} attempts`)
})

test('names of what is moved up are not those of what is in the folder', (t) => {
  const top = mkdtempSync(join(tmpdir(), 'remove-'))
  t.after(() => rmSync(top, { recursive: true, force: true }))
  const folder = join(top, 'copy')
  mkdirSync(join(folder, '.moved-1', 'd'), { recursive: true })
  // Listed before that one.
  mkdirSync(join(folder, '!', ...Array.from({ length: 66 }, () => 'd')), { recursive: true })
  removeTree(folder)
  assert.ok(!existsSync(folder))
})
