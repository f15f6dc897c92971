import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { read } from '../helpers/markdown.js'
import { guard, type Outcome } from './guard.js'

const json = (value: object): string => JSON.stringify(value, null, 2)
const code = (member: string): string => `export class Engine {\n  ${member}(): void\n}\n`
const openapi = (route: object): string => json({ paths: { '/a': { get: 1 }, '/runs': route } })
const asyncapi = (at: string): string =>
  json({ messages: { run_start: { payload: { at } }, run_end: { payload: {} } } })

const API: Readonly<Record<string, string>> = {
  'p.api.txt': code('run'),
  'openapi.json': openapi({ get: 1, put: 2 }),
  'asyncapi.json': asyncapi('string'),
}

/** A repository whose API was accepted. */
class Repository implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), 'runwright-api-'))
  readonly changelog = join(this.root, 'CHANGELOG.md')

  constructor() {
    writeFileSync(this.changelog, '# Changes\n\n## New\n\n- Old.\n\n## 1.0.0\n\n- Older.\n')
    assert.ok(this.guard(API, '--accept', 'First: `$&`.').ok)
  }

  guard(api: Readonly<Record<string, string>>, ...args: readonly string[]): Outcome {
    return guard(this.root, args, new Map(Object.entries(api)))
  }

  file(name: string): string {
    return join(this.root, 'test/api/accepted', name)
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true })
  }
}

test('an accepted API passes', () => {
  using repository = new Repository()
  assert.deepEqual(repository.guard(API), { ok: true, text: 'The API is as accepted.' })
})

const changes = {
  export: { 'p.api.txt': code('start') },
  route: { 'openapi.json': openapi({ get: 1 }) },
  event: { 'asyncapi.json': asyncapi('number') },
}
const shown = {
  export: '@@ export class Engine\n-  run(): void\n+  start(): void\n',
  route: '@@ paths > /runs\n-      "get": 1,\n-      "put": 2\n+      "get": 1\n',
  event: '@@ messages > run_start > payload\n-        "at": "string"\n+        "at": "number"\n',
}

for (const what of ['export', 'route', 'event'] as const) {
  test(`a changed ${what} fails with its place, the difference and what to do`, () => {
    using repository = new Repository()
    const [file] = Object.keys(changes[what])
    const { ok, text } = repository.guard({ ...API, ...changes[what] })
    assert.equal(ok, false)
    assert.ok(text.startsWith(`${file} changed:\n${shown[what]}If callers`), text)
    assert.match(text, /npm run api -- --accept/)
  })
}

test('a long difference is cut', () => {
  using repository = new Repository()
  const { text } = repository.guard({ ...API, 'p.api.txt': code('run').repeat(100) })
  assert.equal(text.split('\n').length, 64)
  assert.match(text, /^… and 239 more lines$/m)
})

test('an accepted change passes and is in the top section of the changelog', () => {
  using repository = new Repository()
  const changed = { ...API, 'p.api.txt': code('start') }
  const accepted = repository.guard(changed, '--accept', ' `run()` is `start()`. ')
  assert.deepEqual(accepted, { ok: true, text: 'Accepted p.api.txt.' })
  assert.ok(repository.guard(changed).ok)
  assert.equal(
    readFileSync(repository.changelog, 'utf8'),
    '# Changes\n\n## New\n\n- Old.\n\n### API changes\n\n- `run()` is `start()`.\n' +
      '- First: `$&`.\n\n## 1.0.0\n\n- Older.\n',
  )
})

test('an entry point that is added or removed has to be accepted', () => {
  using repository = new Repository()
  const { 'p.api.txt': text = '', ...others } = API
  const changed = { ...others, 'q.api.txt': text }
  assert.match(repository.guard(changed).text, /^p.api.txt changed:\n[^]*^q.api.txt changed:\n/m)
  assert.ok(repository.guard(changed, '--accept', 'p is q.').ok)
  assert.ok(!existsSync(repository.file('p.api.txt')))
  assert.ok(repository.guard(changed).ok)
})

for (const [why, args, message] of [
  ['without a line', ['--accept'], /^usage/],
  ['with an empty line', ['--accept', ' '], /needs one line/],
  ['with two lines', ['--accept', 'a\nb'], /needs one line/],
  ['with a line that the changelog has', ['--accept', 'Older.'], /already has: Older/],
  ['with two arguments', ['--accept', 'a', 'b'], /^usage/],
  ['with an unknown option', ['--update'], /^usage/],
] as const) {
  test(`nothing is accepted ${why}`, () => {
    using repository = new Repository()
    const changed = { ...API, 'p.api.txt': code('start') }
    const { ok, text } = repository.guard(changed, ...args)
    assert.equal(ok, false)
    assert.match(text, message)
    assert.equal(repository.guard(changed).ok, false)
    assert.ok(repository.guard(API).ok)
  })
}

test('an API without a change is not accepted again', () => {
  using repository = new Repository()
  assert.equal(repository.guard(API, '--accept', 'Nothing.').ok, false)
  assert.doesNotMatch(readFileSync(repository.changelog, 'utf8'), /Nothing/)
})

test('a description that was edited by hand fails, even if it is right', () => {
  using repository = new Repository()
  const changed = { ...API, 'p.api.txt': code('start') }
  writeFileSync(repository.file('p.api.txt'), code('start'))
  assert.match(repository.guard(changed).text, /^p.api.txt was edited by hand, or merged$/m)
  assert.match(repository.guard(API).text, /^p.api.txt was edited by hand, or merged$/m)
  assert.ok(repository.guard(changed, '--accept', 'Engines start.').ok)
  assert.ok(repository.guard(changed).ok)
})

test('a description without an acceptance fails', () => {
  using repository = new Repository()
  writeFileSync(repository.file('q.api.txt'), code('run'))
  assert.match(repository.guard(API).text, /^q.api.txt was edited by hand, or merged$/m)
})

test('the changelog keeps the lines of the last changes, in any section and wrapped', () => {
  using repository = new Repository()
  writeFileSync(repository.changelog, '# Changes\n\n## 1.1.0\n\n- First:\n  `$&`.\n')
  assert.ok(repository.guard(API).ok)
  writeFileSync(repository.changelog, '# Changes\n\n## 1.1.0\n')
  assert.match(repository.guard(API).text, /^CHANGELOG.md lost a line: First: `\$&`\.$/m)
})

const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, object | string> }
const VALUES = /^export (?:(?:abstract )?(?:class|const|function) |\* as |\{ (?:\w+ as )?)(\w+)/gm

for (const [path, target] of Object.entries(exports)) {
  if (typeof target === 'string') continue
  const specifier = join('runwright', path)
  test(`${specifier} exports the values of its signature at run time`, async () => {
    const signature = read(`test/api/accepted/${specifier.replaceAll('/', '-')}.api.txt`)
    const names = new Set([...signature.matchAll(VALUES)].map(([, name]) => name))
    assert.deepEqual(Object.keys((await import(specifier)) as object).sort(), [...names].sort())
  })
}
