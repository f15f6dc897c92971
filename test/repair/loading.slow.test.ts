import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { withLoader } from '../helpers/programs.js'

test('the first request to the repair model loads its engine, an import does not', () => {
  const child = fileURLToPath(new URL('./loading-child.ts', import.meta.url))
  const options = { encoding: 'utf8' } as const
  const { status, stderr } = spawnSync(process.execPath, [...withLoader, child], options)
  assert.equal(status, 0, stderr)
})
