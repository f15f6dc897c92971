import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const lib = fileURLToPath(new URL('../lib', import.meta.url))

interface Import {
  readonly from: string
  readonly target: string
  readonly typeOnly: boolean
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => normalize(name))
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(lib, file), 'utf8').replaceAll(/\/\*[^]*?\*\//g, '')
  const pattern =
    /^[ \t]*(import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm
  return [...text.matchAll(pattern)].map((match) => {
    const specifier = match[3] ?? match[4] ?? ''
    const target = specifier.startsWith('.')
      ? normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts')
      : specifier
    return { from: file, target, typeOnly: match[2] !== undefined }
  })
}

const imports = sourceFiles(lib).flatMap(importsOf)

/** The module that a path under lib belongs to: its first folder, or 'root' for lib/index.ts. */
const moduleOf = (path: string): string => (path.includes('/') ? path.split('/')[0]! : 'root')

/** What each module may import besides itself, and from which of its folders. */
function mayImport(from: string, target: string): boolean {
  const [source, goal] = [moduleOf(from), moduleOf(target)]
  if (source === goal || source === 'root') return true
  if (source === 'internal') return false
  if (goal === 'internal') return true
  if (source === 'agent' && goal === 'http') {
    return from.startsWith('agent/models/') || from.startsWith('agent/mcp/')
  }
  return source === 'server' && ['http', 'ws', 'agent'].includes(goal)
}

test('lib imports nothing but node: modules and its own files', () => {
  const foreign = imports.filter(
    ({ target }) => !target.startsWith('node:') && !/\.ts$/.test(target),
  )
  assert.deepEqual(
    foreign.map(({ from, target }) => `${from} imports ${target}`),
    [],
  )
})

test('modules are imported in one direction only: server over agent, ws and http, internal under all', () => {
  const wrong = imports.filter(
    ({ from, target }) => target.endsWith('.ts') && !mayImport(from, target),
  )
  assert.deepEqual(
    wrong.map(({ from, target }) => `${from} imports ${target}`),
    [],
  )
})

test('one module reaches another through its index only', () => {
  const deep = imports.filter(({ from, target }) => {
    const [source, goal] = [moduleOf(from), moduleOf(target)]
    if (!target.endsWith('.ts') || source === goal || goal === 'internal') return false
    return target !== `${goal}/index.ts`
  })
  assert.deepEqual(deep.map(({ from, target }) => `${from} imports ${target}`), [])
})

test('no file under lib takes part in a runtime import cycle', () => {
  const graph = new Map<string, string[]>()
  for (const { from, target, typeOnly } of imports) {
    if (!typeOnly && target.endsWith('.ts')) graph.set(from, [...(graph.get(from) ?? []), target])
  }
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): void => {
    const at = trail.indexOf(file)
    assert.equal(at, -1, `import cycle: ${[...trail.slice(at), file].join(' → ')}`)
    if (done.has(file)) return
    for (const next of graph.get(file) ?? []) visit(next, [...trail, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
})

test('the layer check reads the files that are there', () => {
  assert.ok(imports.length > 20, `only ${imports.length} imports found under ${relative('.', lib)}`)
})
