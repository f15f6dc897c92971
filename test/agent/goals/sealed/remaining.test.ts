import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../../../helpers/markdown.js'
import { hacks } from './cases/index.js'
import { open, REMAINING } from './open.js'

test('docs/goals.md names each class of hacks that remain', () => {
  const page = readFileSync(join(root, 'docs/goals.md'), 'utf8')
  const [, list = ''] = /^## What remains$(.*?)^\*Met\*/ms.exec(page) ?? []
  const bold = [...list.matchAll(/^- \*\*(.+?)\.?\*\*/gms)]
  const titles = bold.map(([, title]) => title!.toLowerCase())
  for (const name of REMAINING) assert.ok(titles.includes(name), name)
})

test('a trick or a case shows each of them', () => {
  const shown = new Set<string>(Object.values(open))
  for (const { expected } of hacks) if (expected !== 'refused') shown.add(expected.remains)
  assert.deepEqual(REMAINING.filter((name) => !shown.has(name)), [])
})
