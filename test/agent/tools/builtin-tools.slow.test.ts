import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolContext } from './tool-context.js'
import { call } from './builtin-calls.js'

test('list_files stops after 1000 entries and says so', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 1_005 }, (_, i) => [`f${i}`, '']))
  const lines = (await call(await toolContext(t, files), 'list_files', {})).split('\n')
  assert.equal(lines.length, 1_001)
  assert.match(lines.at(-1) ?? '', /more than 1000 entries/)
})

test('search_files stops a regular expression that would run forever', async (t) => {
  const context = await toolContext(t, { f: `${'a'.repeat(60)}!\n` })
  assert.match(
    await call(context, 'search_files', { pattern: '^(a+)+$', regex: true }),
    /^1: the regular expression took longer than 2000 ms/,
  )
})
