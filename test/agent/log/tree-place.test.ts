import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldHead } from '../../../lib/agent/log/head.js'
import { treePlaceOf } from '../../../lib/agent/log/tree-place.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

const { details } = foldHead(null, sampleRun('r1', {})[0]!)

test('a child has the root, the parent and the role of its details', () => {
  const child = { ...details, parent_run_id: 'p', root_run_id: 'top', role: 'attempt' }
  assert.deepEqual(treePlaceOf(child), { root: 'top', parent: 'p', role: 'attempt' })
})

test('roots, retries, and runs of versions without trees are their own roots', () => {
  const own = { root: 'r1', parent: null, role: null }
  const retry = { ...details, parent_run_id: 'p' }
  for (const one of [details, retry, { ...retry, root_run_id: 'r1', role: 'root' }]) {
    assert.deepEqual(treePlaceOf(one), own)
  }
})
