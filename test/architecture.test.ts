import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { boxes, emptyBoxes } from './architecture/boxes.js'
import { draw, PICTURE } from './architecture/draw.js'
import { read, root } from './helpers/markdown.js'

const page = read('docs/design/architecture.md')

/** Rows of a table, each a list of cells. */
const rows = [...page.matchAll(/^\| (.+) \|$/gm)].map(([, cells]) => cells!.split(' | '))
const inCode = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, it]) => it!)

test('the architecture picture shows the imports as they are', () => {
  assert.equal(read(PICTURE), draw(), 'run npm run architecture')
})

test('the picture has at most 15 boxes, each with files in it', () => {
  assert.ok(boxes.length <= 15, `${boxes.length} boxes`)
  assert.deepEqual(emptyBoxes(), [])
})

test('the page says what each folder of lib is for, and names no other', () => {
  const listed = rows.flatMap(([folders = '', about]) => {
    if (!folders.startsWith('`lib/') || folders.includes('.ts') || about === undefined) return []
    const [first = '', ...siblings] = inCode(folders)
    return [first, ...siblings.map((name) => join(first, '..', name))]
  })
  const folders = readdirSync(join(root, 'lib'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'static')
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
  assert.deepEqual(listed.sort(), folders.sort())
})

test('every function that the page follows is in the file it names', () => {
  const steps = rows.filter(([where = '']) => /^`lib\/.*\.ts`/.test(where))
  assert.ok(steps.length >= 25, `only ${steps.length} steps were found`)
  for (const [where = '', names = ''] of steps) {
    for (const path of inCode(where)) {
      assert.ok(existsSync(join(root, path)), `there is no ${path}`)
      const source = read(path)
      for (const name of inCode(names).flatMap((it) => it.split('.'))) {
        assert.match(source, new RegExp(`\\b${name}\\b`), `${path} has no ${name}`)
      }
    }
  }
})

test('every path that CONTRIBUTING names is there', () => {
  const paths = inCode(read('CONTRIBUTING.md')).filter((it) => /^[\w./-]+\/[\w.-]+\.ts$/.test(it))
  assert.ok(paths.length >= 20, `only ${paths.length} were found`)
  const places = ['', 'lib', 'lib/agent', 'lib/server']
  const isThere = (path: string): boolean =>
    places.some((place) => existsSync(join(root, place, path)))
  assert.deepEqual(paths.filter((path) => !isThere(path)), [])
})
