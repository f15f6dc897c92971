/** A suite of a million tests. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

test('a million tests are read, kept and compared in bounded memory', async () => {
  const child = fileURLToPath(new URL('million-tests-child.ts', import.meta.url))
  const args = ['--max-old-space-size=96', '--conditions=runwright-source', '--import', 'tsx']
  const { stdout } = await promisify(execFile)(process.execPath, [...args, child, '1000000'])
  const { change, counts, bytes, rss } = JSON.parse(stdout) as Record<string, unknown>
  const missing = '2 tests of the first check are missing, one of them in'
  const place = '"test/unit/part-0/values.test.js" (and 1 more)'
  assert.equal(change, `tests changed: ${missing} ${place}`)
  assert.deepEqual(counts, { total: 1_000_000, passed: 980_000, failed: 0, skipped: 20_000 })
  assert.ok(Number(bytes) < 13_000_000, `${String(bytes)} bytes in the log`)
  assert.ok(Number(rss) < 400_000_000, `${String(rss)} bytes of memory`)
})
