import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { Children } from '../../helpers/kill.js'

const children = new Children<typeof import('./no-descriptors-child.js')>(
  new URL('no-descriptors-child.ts', import.meta.url),
)
const FEW_FILES = ['/bin/sh', '-c', 'ulimit -n 400; exec "$@"', 'sh']

test('runs wait while no file descriptor is left, and then achieve their goals', async (t) => {
  const root = scratch(t)
  const { lines } = await children.run('exhaustDescriptors', { root }, { under: FEW_FILES })
  const runs = lines.map((line) => line.split(' '))
  assert.equal(runs.length, 2)
  for (const [left, status] of runs) assert.equal(status, 'achieved', `${left} left`)
  // Without any, each of the five turns is followed by a wait, of which the log has one line.
  assert.deepEqual(runs[0], ['0', 'achieved', '5', 'true'])
})
