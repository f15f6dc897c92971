import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { noSmallDisk, runOnSmallDisk } from '../../helpers/small-disk.js'

test('a run that fills the disk waits until there is room, also over a restart', (t) => {
  const missing = noSmallDisk()
  if (missing !== undefined) return t.skip(missing)
  const program = 'test/agent/crash/full-disk-child.ts'
  const { status, stdout, stderr } = runOnSmallDisk(program, scratch(t))
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^running, while cannot write to .*: the disk is full; free some space$/m)
  assert.match(stdout, /^closed while the disk is full$/m)
  assert.match(stdout, /all there/)
})
