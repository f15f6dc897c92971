import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { programAt } from '../../helpers/programs.js'

test('runs wait while no file descriptor is left, and then achieve their goals', (t) => {
  const program = programAt('test/agent/run/no-descriptors-child.ts')
  const { stdout, stderr } = spawnSync(
    '/bin/sh',
    ['-c', 'ulimit -n 400; exec "$0" "$@"', process.execPath, ...program, scratch(t)],
    { encoding: 'utf8' },
  )
  const runs = stdout.trim().split('\n').map((line) => line.split(' '))
  assert.equal(runs.length, 2, stderr)
  for (const [left, status] of runs) assert.equal(status, 'achieved', `${left} left`)
  // Without any, each of the five turns is followed by a wait, of which the log has one line.
  assert.deepEqual(runs[0], ['0', 'achieved', '5', 'true'])
})
