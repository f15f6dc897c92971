import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = readFileSync(join(root, 'docs/security.md'), 'utf8')
const section = page.slice(page.indexOf('## How it is attacked'))

/** A *name* in a file: what a row of the table says is a test of that file. */
const named = section
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .flatMap((row) => {
    const files = [...row.matchAll(/`(test\/[^`]+\.test\.ts)`/g)]
    return [...row.matchAll(/\*([^*]+)\*/g)].map(({ 1: name, index }) => {
      const file = files.find((link) => link.index > index)?.[1] ?? ''
      return { name: name!, file }
    })
  })

/** Whether a line of the source has the parts of a name in order; `…` stands for anything. */
function hasTest(source: string, name: string): boolean {
  const parts = name.split('…')
  return source.split('\n').some((line) => {
    let from = 0
    return parts.every((part) => {
      const at = line.indexOf(part, from)
      from = at + part.length
      return at !== -1
    })
  })
}

for (const { name, file } of named) {
  test(`the security page names a test: ${name}`, () => {
    assert.ok(hasTest(readFileSync(join(root, file), 'utf8'), name), `${file} has no such test`)
  })
}

test('the names of the security page are found, and wrong ones are not', () => {
  assert.ok(named.length > 20)
  assert.ok(!hasTest("test('one two', () => {})", 'two … one'))
})
