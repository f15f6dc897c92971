import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readRegularFile, readSmallFile } from '../../../lib/agent/goals/small-file.js'
import { cargo } from '../../../lib/agent/goals/reports/cargo.js'
import { bun } from '../../../lib/agent/goals/reports/bun.js'
import { scratch } from '../../helpers/engine.js'

const noProc = process.platform === 'linux' ? false : 'needs /proc'

test('what is no regular file is not read, and nothing is waited for', async (t) => {
  const folder = scratch(t)
  const path = (name: string): string => join(folder, name)
  writeFileSync(path('text'), 'text')
  writeFileSync(path('empty'), '')
  writeFileSync(path('sparse'), '')
  truncateSync(path('sparse'), 10 * 1024 ** 3)
  execFileSync('mkfifo', [path('pipe')])
  mkdirSync(path('folder'))
  symlinkSync('text', path('link'))
  symlinkSync('/dev/zero', path('zero'))
  const read = async (name: string): Promise<string> => String(await readRegularFile(path(name), 9))
  const names = ['text', 'empty', 'sparse', 'pipe', 'folder', 'link', 'zero', 'none', 'text/none']
  assert.deepEqual(await Promise.all(names.map(read)), [
    'text', '', 'too_large', 'invalid', 'invalid', 'invalid', 'invalid', 'absent', 'invalid',
  ])
  const small = names.map((name) => readSmallFile(path(name)))
  const [text, empty, link] = ['text', '', 'text']
  assert.deepEqual(await Promise.all(small), [
    text, empty, null, null, null, link, null, null, null,
  ])
})

test('a file of /proc without an end is not read on and on', { skip: noProc }, async (t) => {
  const folder = scratch(t)
  symlinkSync('/proc/self/pagemap', join(folder, 'package.json'))
  assert.equal(await readSmallFile(join(folder, 'package.json')), '')
})

test('links in the place of reports are not followed', async (t) => {
  const folder = scratch(t)
  const outside = scratch(t)
  const nonce = 'nonce'
  const report = '<testsuites><testsuite name="a"><testcase name="b"/></testsuite></testsuites>'
  writeFileSync(join(outside, 'xml'), report)
  writeFileSync(join(outside, 'list'), 'outside: test\n')
  symlinkSync(join(outside, 'xml'), join(folder, 'bun.xml'))
  mkdirSync(join(folder, 'cargo-1'))
  symlinkSync(join(outside, 'list'), join(folder, 'cargo-1/list'))
  writeFileSync(join(folder, 'cargo-1/end'), `${nonce}\n`)
  const place = { folder, nonce, root: folder }
  assert.equal(await bun.read(place, ''), 'invalid')
  assert.ok(!JSON.stringify(await cargo.read(place, '')).includes('outside'))
})
