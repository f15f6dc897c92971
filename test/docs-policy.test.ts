import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RECORD_VERSION } from '../lib/agent/events.js'
import { JOURNAL_VERSION } from '../lib/agent/stores/file/journal-line.js'
import { read } from './helpers/markdown.js'

const page = read('docs/policy.md')

test('docs/policy.md names the newest version of each format', () => {
  const schema = read('lib/agent/stores/postgres/schema.ts')
  const migrations = [...schema.matchAll(/version: (\d+)\b/g)].map((match) => Number(match[1]))
  const rows = [...page.matchAll(/^\| ([\w ]+?) \(.*?\) \| (\d+) \| 1 (?:to|and) (\d+)/gm)]
  assert.deepEqual(
    rows.map(([, format, newest, reads]) => [format, Number(newest), Number(reads)]),
    [
      ['records of runs', RECORD_VERSION, RECORD_VERSION],
      ['data folder', JOURNAL_VERSION, JOURNAL_VERSION],
      ['tables', Math.max(...migrations), Math.max(...migrations)],
    ],
  )
})

test('docs/policy.md says that nothing is deprecated, and nothing is', () => {
  assert.match(page, /Nothing is deprecated at present/)
  for (const module of ['http', 'ws', 'agent', 'agent/testing', 'server'])
    assert.doesNotMatch(read(`lib/${module}/index.ts`), /@deprecated/)
})
