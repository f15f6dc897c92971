import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { providersFromEnvironment, transition, type RunStatus } from 'runwright/agent'
import ts from 'typescript'
import {
  COMMAND_VARIABLE, RUN_VARIABLE, scrubbedEnvironment,
} from '../lib/agent/executors/environment.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const page = read('docs/reference.md')

/** Rows of the tables below a heading, with the text of their cells. */
function rowsOf(heading: string): string[][] {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))
  assert.ok(text !== undefined, `docs/reference.md has no heading ${heading}`)
  const lines = text.split('\n').filter((line) => line.startsWith('| `'))
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.replaceAll('`', '').trim()),
  )
}

/** The fields of an interface in a source file. */
function fieldsOf(source: string, name: string): string[] {
  const body = new RegExp(`export interface ${name} \\{([^]*?)\\n\\}`).exec(source)?.[1]
  assert.ok(body !== undefined, `there is no interface ${name}`)
  return [...body.matchAll(/^  readonly (\w+)\??:/gm)].map((match) => match[1]!)
}

/** The fields of each event kind, as declared in events.ts and run-tree.ts. */
function declaredEvents(): Map<string, string[]> {
  const source = read('lib/agent/events.ts')
  const trees = read('lib/agent/run-tree.ts')
  const body =
    /export interface EventPayloads \{([^]*?)\n\}/
      .exec(source)?.[1]
      ?.replaceAll(/\/\*\*[^]*?\*\//g, '') ?? ''
  const events = body.split(/^  readonly (?=\w+: )/m).slice(1)
  return new Map(
    events.map((text): [string, string[]] => {
      const [, kind = '', payload = ''] = /^(\w+): ([^]*)$/.exec(text) ?? []
      const depth = payload.trim().includes('\n')
        ? /^    readonly (\w+)\??:/gm
        : /readonly (\w+)\??:/g
      const own = [...payload.matchAll(depth)].map((match) => match[1]!)
      const others = [...payload.matchAll(/& (\w+)/g)].map((match) => match[1]!)
      return [kind, [...own, ...others.flatMap((name) => fieldsOf(trees, name))]]
    }),
  )
}

test('docs/reference.md lists every event kind with every field of its payload', () => {
  const declared = declaredEvents()
  assert.ok(declared.size >= 19, `found only ${declared.size}`)
  const listed = new Map(
    rowsOf('Events').map(([kind = '', , fields = '']) => [
      kind,
      fields.split(', ').filter((name) => name !== ''),
    ]),
  )
  assert.deepEqual([...listed.keys()].sort(), [...declared.keys()].sort())
  for (const [kind, fields] of declared)
    assert.deepEqual(listed.get(kind)?.toSorted(), fields.toSorted(), kind)
})

test('docs/reference.md lists what may follow each status', () => {
  const triggers = ['start', 'gate', 'respond', 'achieve', 'fail', 'abort'] as const
  for (const [status = '', , next = ''] of rowsOf('Statuses')) {
    const possible = triggers
      .map((trigger) => transition(status as RunStatus, trigger))
      .filter((one) => one !== null)
    assert.deepEqual(next === 'nothing' ? [] : next.split(', ').sort(), possible.sort(), status)
  }
  assert.equal(rowsOf('Statuses').length, 6)
})

/** Names of variables that a source file reads by name: `env['X']`, `{ X } = process.env`, … */
function variablesIn(path: string): string[] {
  const text = read(path)
  if (!/\benv\b/.test(text)) return []
  const names: string[] = []
  const isEnv = (node: ts.Node | undefined): boolean =>
    node !== undefined && /^(process\.)?env$/.test(node.getText(file))
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const visit = (node: ts.Node): void => {
    if (ts.isElementAccessExpression(node) && isEnv(node.expression)) {
      const { argumentExpression: name } = node
      if (ts.isStringLiteral(name)) names.push(name.text)
      else if (node.expression.getText(file) === 'process.env' && !dynamic.has(path))
        throw new Error(`${path} reads ${node.getText(file)}: list it in this test`)
    } else if (ts.isObjectBindingPattern(node) && isEnv(initializerOf(node))) {
      names.push(...node.elements.map((one) => (one.propertyName ?? one.name).getText(file)))
    } else if (ts.isPropertyAccessExpression(node) && isEnv(node.expression)) {
      names.push(node.name.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return names
}

function initializerOf({ parent }: ts.ObjectBindingPattern): ts.Node | undefined {
  return ts.isVariableDeclaration(parent) ? parent.initializer : undefined
}

/** Files whose variables have names from a table or an argument, and what is known of them. */
const dynamic = new Map<string, () => readonly string[]>([
  [
    'lib/http/environment.ts',
    () => ['http', 'https', 'all', 'no'].map((name) => `${name.toUpperCase()}_PROXY`),
  ],
  ['lib/agent/models/environment.ts', providerVariables],
  // Folders of toolchains, given to commands that have none.
  ['lib/agent/executors/copy-executor.ts', () => []],
])

/** What `providersFromEnvironment()` reads, whatever is set. */
function providerVariables(): string[] {
  const read = new Set<string>()
  const value = (name: string): string =>
    /_LENGTH$/.test(name) ? '4096' : /URL$|HOST$/.test(name) ? 'http://127.0.0.1:9' : 'key'
  for (const valueOf of [value, () => undefined]) {
    const get = (_target: object, name: string | symbol): string | undefined => {
      if (typeof name === 'symbol') return undefined
      read.add(name)
      return valueOf(name)
    }
    providersFromEnvironment(new Proxy({}, { get }))
  }
  return [...read]
}

/** Names of variables that commands of a run have. */
function commandVariables(): string[] {
  const source = read('lib/agent/executors/environment.ts')
  const passed = /const PASSED[^=]*= \[([^]*?)\]/.exec(source)?.[1] ?? ''
  const env = scrubbedEnvironment({}, [], { [RUN_VARIABLE]: '', [COMMAND_VARIABLE]: '' })
  return [...[...passed.matchAll(/'([^']+)'/g)].map((match) => match[1]!), ...Object.keys(env)]
}

test('docs/reference.md lists every environment variable that lib and the examples read', () => {
  const files = ['lib', 'examples', 'examples/mounts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: folder === 'lib', encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  )
  const found = [
    ...files.flatMap(variablesIn),
    ...[...dynamic.values()].flatMap((names) => names()),
    ...commandVariables(),
  ]
  const [, environment = ''] = page.split('\n## Environment\n')
  const listed = environment.matchAll(/`\$?((?:[A-Z]+_)*[A-Z]+(?:_\*)?)(?:[=/][^`]*)?`/g)
  // That of a check's command, which its runner sets.
  const expected = [...new Set(found)].filter((name) => name !== 'NODE_OPTIONS').sort()
  assert.ok(expected.length >= 50, `found only ${expected.length}`)
  assert.deepEqual([...new Set([...listed].map((match) => match[1]!))].sort(), expected)
})
