import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { noSmallDisk, runOnSmallDisk } from '../../helpers/small-disk.js'

test('a run that fills the disk fails with advice; its service and other runs go on', (t) => {
  const missing = noSmallDisk()
  if (missing !== undefined) return t.skip(missing)
  const program = 'test/agent/crash/full-disk-child.ts'
  const { status, stdout, stderr } = runOnSmallDisk(program, scratch(t))
  assert.equal(status, 0, stderr)
  assert.match(
    stdout,
    /^failed internal_error ERR_AGENT_STORE cannot write to .*: the disk is full; free some space$/m,
  )
  assert.match(stdout, /all there/)
})
