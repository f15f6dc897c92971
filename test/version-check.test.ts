import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { withVersionCheck } from '../version-check.mjs'
import { root } from './helpers/markdown.js'

/** What a file says under a Node of this version; `loaded` when it runs. */
function told(code: string, node: string | undefined): string {
  const said: string[] = []
  const process = { version: `v${node}`, versions: { node }, exit: (): void => void said.push('1') }
  const console = { error: (line: string): void => void said.push(line) }
  const exotic = node === undefined ? {} : { process }
  const script = withVersionCheck(code, '>=20.19').replace(/^#!.*/, '')
  try {
    runInNewContext(script, { ...exotic, console, run: () => said.push('loaded') })
  } catch (error) {
    said.push((error as Error).message)
  }
  return said.join(' ')
}

const NEEDED = 'runwright needs Node 20.19 or newer; this is v'

for (const [node, expected] of [
  ['14.21.3', `${NEEDED}14.21.3`],
  ['18.20.8', `${NEEDED}18.20.8`],
  ['20.9.0', `${NEEDED}20.9.0`],
  ['20.18.3', `${NEEDED}20.18.3`],
  ['20.19.0', 'loaded'],
  ['22.0.0', 'loaded'],
  ['100.1.0', 'loaded'],
  [undefined, 'loaded'],
] as const) {
  test(`under Node ${node} a file that may run first says: ${expected}`, () => {
    assert.equal(told('run()', node), expected)
  })
}

test('a program prints which Node is needed, and fails', () => {
  const code = withVersionCheck('#!/usr/bin/env node\nrun()', '>=20.19')
  assert.match(code, /^#!\/usr\/bin\/env node\n\{/)
  // The stub of exit() comes back.
  assert.equal(told('#!/usr/bin/env node\nrun()', '18.0.0'), `${NEEDED}18.0.0 1 loaded`)
})

test('a file that imports another one of the package has no check of its own', () => {
  for (const code of [
    'import {\n  a,\n  b\n} from "./chunks/a.js";\na()',
    'import "../a.js";',
    'export * from "./a.js";',
    'import { join } from "node:path";\nexport { a } from \'./a.js\';',
  ]) {
    assert.equal(withVersionCheck(code, '>=20.19'), code)
  }
  const own = 'import { join } from "node:path";\nawait import("./a.js");\nconst a = "./b";\n'
  assert.notEqual(withVersionCheck(own, '>=20.19'), own)
})

/** The oldest Node that has a function of one of its modules, by the comment above it: 1814. */
function since(types: string, name: string): number {
  const named = new RegExp(`^\\s*(?:export )?(?:function|class|const) ${name}\\b`, 'm')
  const at = named.exec(types)?.index
  if (at === undefined || !types.slice(0, at).trimEnd().endsWith('*/')) return 0
  const comment = types.slice(types.lastIndexOf('/**', at), at)
  const versions = [.../@since (.*)/.exec(comment)?.[1]?.matchAll(/(\d+)\.(\d+)/g) ?? []]
  const numbers = versions.map(([, major, minor]) => Number(major) * 100 + Number(minor))
  return numbers.length === 0 ? 0 : Math.min(...numbers)
}

test('no module is a SyntaxError under Node 18 for what it imports of Node', () => {
  const found: string[] = []
  let count = 0
  // The program is loaded after the check.
  const paths = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
  for (const path of paths.filter((one) => one.endsWith('.ts') && !one.startsWith('cli/'))) {
    const text = readFileSync(join(root, 'lib', path), 'utf8')
    for (const [, names = '', module = ''] of text.matchAll(
      /^import \{([^}]*)\} from 'node:(\w+)[\w/]*'/gm,
    )) {
      const types = readFileSync(join(root, `node_modules/@types/node/${module}.d.ts`), 'utf8')
      for (const name of names.split(',').map((part) => part.trim())) {
        if (name === '' || name.startsWith('type ')) continue
        count++
        const [imported = ''] = name.split(' ')
        if (since(types, imported) > 1800) found.push(`${path}: ${imported} of node:${module}`)
      }
    }
  }
  assert.deepEqual(found, [])
  assert.ok(count > 300, String(count))
  const crypto = readFileSync(join(root, 'node_modules/@types/node/crypto.d.ts'), 'utf8')
  assert.equal(since(crypto, 'hash'), 2012)
})
