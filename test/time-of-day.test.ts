import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sourceFiles } from './helpers/imports.js'
import { root } from './helpers/markdown.js'

/**
 * Where the time of day is read, and what for: points in time. Durations within a process are
 * measured with `steadyNow()` and `performance.now()`.
 */
const READERS: Readonly<Record<string, string>> = {
  'internal/time.ts': 'the clock itself',
  'agent/log/run-time.ts': '`ts` of records; deadlines that another process has stored',
  'agent/run/end-from-records.ts': '`ts` of records',
  'agent/run/run-parts.ts': 'ids',
  'agent/run/steps/human-check.ts': 'deadlines of gates; ids',
  'agent/request/creation.ts': '`ts` of the first record; ids',
  'agent/request/tenant-usage.ts': 'the day of the runs in a store',
  'agent/engine.ts': 'ids',
  'agent/checkpoints/file-operations.ts': 'ids',
  'agent/mcp/stdio.ts': 'ids',
  'agent/run/children/delegates.ts': 'ids',
  'agent/run/children/run-children.ts': 'ids',
  'agent/stores/postgres/postgres-store.ts': 'ids',
  'agent/stores/postgres/claims.ts': 'the end of a lease, also by the steady clock',
  'agent/goals/hash-cache.ts': 'compared with times of files',
  'agent/goals/sealed/put-back.ts': 'times of files that are changed',
  'agent/goals/sealed/sealed-check.ts': 'compared with times of files',
  'agent/stores/file/disk.ts': 'times of files',
  'agent/stores/file/lock.ts': 'compared with times of files',
  'agent/stores/file/objects.ts': 'compared with times of files',
  'agent/workspace/folder-scan.ts': 'compared with times of files',
  'agent/workspace/hash-dependencies.ts': 'compared with times of files',
  'agent/workspace/folder-changes.ts': 'compared with times of files',
  'agent/models/http-calls.ts': 'a Retry-After that is a date',
  'agent/testing/evaluation/evaluate.ts': 'when an evaluation took place',
  'server/access/quotas.ts': 'when a quota is free again',
  'server/monitoring/monitor.ts': 'times of lines of the log',
  'server/webhooks/cursor.ts': 'compared with creations of runs',
  'server/webhooks/delivery.ts': 'a Retry-After that is a date',
  'server/webhooks/endpoint.ts': 'times of signatures',
}

test('the time of day is read for points in time, and nowhere else', () => {
  const reads = /\bDate\.now\b|\bnew Date\(\)|\bclock\.now\(|\bconfig\.clock\.now\b/
  const found = sourceFiles.filter(
    (path) =>
      !/^(http|ws)\//.test(path) &&
      path.endsWith('.ts') &&
      reads.test(readFileSync(join(root, 'lib', path), 'utf8')),
  )
  assert.deepEqual(found.sort(), Object.keys(READERS).sort())
})
