import { atOnce } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tree } from '../../../lib/agent/tree.js'
import { netChanges } from '../../../lib/agent/workspace/net-changes.js'
import { entryOf, file } from '../../helpers/tree-model.js'

test('40 000 files that all moved, most of them equal, are compared in near-linear time', () => {
  const entry = entryOf(file('x'))
  const tree = (folder: string, size: number): Tree => ({
    entries: new Map(Array.from({ length: size }, (_, i) => [`${folder}/${i % 500}/f${i}`, entry])),
    leftOut: [],
  })
  const cpu = (size: number): number => {
    const [a, b] = [tree('a', size), tree('b', size)]
    const start = process.cpuUsage()
    const found = atOnce(netChanges(a, b))
    const { user, system } = process.cpuUsage(start)
    assert.equal(found.length, size)
    assert.ok(found.every(({ path, oldPath }) => oldPath === path.replace('b', 'a')))
    return user + system
  }
  cpu(5_000)
  const [few, many] = [cpu(5_000), cpu(40_000)]
  assert.ok(many < few * 40, `${few} µs for 5000, ${many} µs for 40 000`)
})
