import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ansi, event, search } from './static-modules.js'

test('hostile text takes linear time and keeps every character', () => {
  const texts = [
    '\x1b['.repeat(200_000),
    '\x1b[31'.repeat(100_000),
    `${'\x1b[1mx\x1b[0m'.repeat(50_000)}`,
    '\x1b[38;2;1;2;3m\n'.repeat(50_000),
    '\n'.repeat(500_000),
  ]
  for (const text of texts) {
    const lines = ansi.linesOf(text)
    const joined = lines.map((line) => line.map((run) => run.text).join('')).join('\n')
    assert.equal(joined, ansi.withoutStyles(text))
  }
})

test('a payload of any depth and width is searched in bounded time', () => {
  let deep: object = { text: 'needle' }
  for (let i = 0; i < 10_000; i++) deep = { deep }
  assert.equal(search.matchesOf(event('tool_call', deep), {}, 'needle'), 1)
  const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, 'needle']))
  assert.ok(search.matchesOf(event('tool_call', wide), {}, 'needle') <= 20_000)
})
