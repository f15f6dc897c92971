import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const entryPoints: Record<string, string> = {
  'runwright/http': 'http',
  'runwright/ws': 'ws',
  'runwright/agent': 'agent',
  'runwright/agent/testing': 'agent-testing',
  'runwright/server': 'server',
}

for (const [specifier, list] of Object.entries(entryPoints)) {
  test(`${specifier} exports exactly the names in fixtures/exports/${list}.json`, async () => {
    const file = new URL(`./fixtures/exports/${list}.json`, import.meta.url)
    const expected: unknown = JSON.parse(readFileSync(file, 'utf8'))
    const names = Object.keys((await import(specifier)) as object).sort()
    assert.deepEqual(names, expected)
  })
}

test('runwright exports one namespace per module', async () => {
  const names = Object.keys((await import('runwright')) as object).sort()
  assert.deepEqual(names, ['agent', 'http', 'server', 'ws'])
})
