import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const BROKEN = `export function contains(range, n) {
  return n >= range.from && n > range.to
}
export function size(range) {
  return range.to + range.from
}
`
/** The module of the project without its bugs. */
export const FIXED_RANGE: string = BROKEN.replace('n > range.to', 'n < range.to').replace(
  'range.to + ',
  'range.to - ',
)

/** The files of a project of one module with two bugs. */
export const plantedFiles: Readonly<Record<string, string>> = {
  'package.json': '{"type":"module","scripts":{"test":"node --test"}}',
  'range.js': BROKEN,
  'test/range.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contains, size } from '../range.js'
test('contains what lies between', () => assert.equal(contains({ from: 2, to: 5 }, 3), true))
test('does not contain what lies above', () => assert.equal(contains({ from: 2, to: 5 }, 6), false))
test('does not contain its end', () => assert.equal(contains({ from: 2, to: 5 }, 5), false))
test('has a size', () => assert.equal(size({ from: 2, to: 5 }), 3))
`,
}

/**
 * Creates the project, whose bugs take `builtin:repair` a few iterations.
 *
 * @returns `project`.
 */
export function plantBugs(project: string): string {
  mkdirSync(join(project, 'test'), { recursive: true })
  for (const [name, text] of Object.entries(plantedFiles)) writeFileSync(join(project, name), text)
  return project
}
