import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { nodeTest } from '../../../lib/agent/goals/reports/node-test.js'

const run = promisify(execFile)

// Node 24.21 and later pass to test files as arguments what they also have in NODE_OPTIONS.
test('a test file that loads our module from NODE_OPTIONS and as an argument runs once', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'runwright-twice-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const { files, env } = nodeTest.inject({ folder, nonce: 'abc', root: folder }, {})
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const file = join(folder, 'it.test.js')
  writeFileSync(file, `require('node:test').test('it works', () => {})`)
  const [lock = ''] = /^--require=\S+/.exec(env['NODE_OPTIONS'] ?? '') ?? []
  const { PATH = '' } = process.env
  const child = { PATH, NODE_OPTIONS: lock, NODE_TEST_CONTEXT: 'child' }
  const { stderr } = await run(process.execPath, [lock, file], { cwd: folder, env: child })
  assert.equal(stderr, '')
})
