import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { transition, type RunStatus } from 'runwright/agent'

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

test('docs/reference.md lists every environment variable that is read', () => {
  const listed = rowsOf('Environment').flatMap(([names = '']) => names.split(', '))
  const files = [
    'lib/http/environment.ts',
    'lib/agent/models/environment.ts',
    'examples/standalone-server.ts',
    ...readdirSync(join(root, 'lib/server'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `lib/server/${name}`),
  ]
  const found = files.flatMap((file) => {
    const source = read(file).replaceAll(/^\s*(\/?\*|\/\/).*$/gm, '')
    const named = [
      ...source.matchAll(/env\['(\w+)'\]|(?:keyOf|urlOf|valueOf)\(env, '(\w+)'\)/g),
    ].map((match) => match[1] ?? match[2]!)
    return [
      ...named,
      ...[...source.matchAll(/read\('(\w+)'\)/g)].map((match) => match[1]!.toUpperCase()),
    ]
  })
  const notListed = new Set(['REQUEST_METHOD', 'XDG_STATE_HOME'])
  const expected = [...new Set(found)].filter((name) => !notListed.has(name)).sort()
  assert.ok(expected.length >= 20, `found only ${expected.length}`)
  assert.deepEqual(listed.sort(), expected)
})
