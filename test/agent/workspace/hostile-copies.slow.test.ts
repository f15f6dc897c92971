import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isLarger } from '../../../lib/agent/workspace/measure-tree.js'
import { Place } from './hostile-place.js'

test('a link through thousands of names is copied and named, without looking at all', (t) => {
  const place = new Place(t).write('a/b', 'x')
  let target = 'a/../'.repeat(700)
  for (let i = 0; i < 39; i++) {
    fs.symlinkSync(target, join(place.from, `l${i}`))
    target = `${'a/../'.repeat(700)}l${i}`
  }
  for (let i = 0; i < 20; i++) fs.symlinkSync('l38', join(place.from, `m${i}`))
  const before = process.cpuUsage()
  assert.match(place.copy(), /^These links lead out .* and \d+ more\.$/)
  const { user, system } = process.cpuUsage(before)
  // 16 s before there was a bound.
  assert.ok(user + system < 2e6, `${(user + system) / 1e6} s`)
  assert.equal(fs.readlinkSync(join(place.to, 'm3')), 'l38')
})

test('a folder deeper than any path is no reason to refuse a copy', async (t) => {
  const place = new Place(t)
  let folder = fs.openSync(place.from, 'r')
  for (let level = 0; level < 300; level++) {
    const child = `/proc/self/fd/${folder}/${'n'.repeat(200)}`
    fs.mkdirSync(child)
    const next = fs.openSync(child, 'r')
    fs.closeSync(folder)
    folder = next
  }
  fs.closeSync(folder)
  assert.equal(isLarger(place.from, 1e6, [], []), false)
  assert.match(place.copy(), /^Folders at a depth of more than 250 were left out/)
})

test('thousands of paths in thousands of scripts are not all looked up, and that is told', (t) => {
  const place = new Place(t)
  const lines = (script: number): string =>
    Array.from({ length: 4_000 }, (_, i) => `/${script}-${i}/x\n`).join('')
  for (let i = 0; i < 40; i++) place.write(`node_modules/.bin/${i}`, lines(i))
  const before = process.cpuUsage()
  assert.match(place.copy(), /hold too many paths.* and \d\d more\.$/)
  const { user, system } = process.cpuUsage(before)
  // 320 000 look-ups took 6 s.
  assert.ok(user + system < 3e6, `${(user + system) / 1e6} s`)
})
