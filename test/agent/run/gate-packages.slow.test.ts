import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { JsonObject } from 'runwright/agent'
import { follow, openEngine, scratch, testProvider } from '../../helpers/engine.js'

const lock = (packages: Readonly<Record<string, string>>): string => {
  const entries = Object.entries(packages).map(([name, version]) => [
    `node_modules/${name}`, { version },
  ])
  return JSON.stringify({ lockfileVersion: 3, packages: Object.fromEntries(entries) })
}

/** The summary of the first gate of a run whose model writes these files. */
async function summaryAfter(
  t: TestContext,
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
  request: JsonObject = { hitl_enabled: true },
): Promise<string> {
  const cwd = scratch(t)
  for (const [path, text] of Object.entries(before)) writeFileSync(join(cwd, path), text)
  const calls = Object.entries(after).map(([path, content]) => ({
    tool: 'write_file', args: { path, content },
  }))
  const provider = testProvider((_, call) => (call === 0 ? { calls } : {}))
  const { engine } = await openEngine(t, { cwd, providers: [provider], checkpoints: 'auto' })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 2, ...request })
  const events = await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  const gate = events.at(-1)
  await engine.abort(details.run_id)
  return gate?.kind === 'human_check_required' ? gate.payload.summary : ''
}

test('a gate names the packages that changed in lock files', async (t) => {
  const summary = await summaryAfter(
    t,
    { 'package-lock.json': lock({ a: '1.0.0', gone: '1.0.0' }), 'requirements.txt': '' },
    {
      'package-lock.json': lock({ a: '2.0.0', '@s/new': '1.0.0' }),
      'requirements.txt': 'mine @ https://ann:correct-horse-battery@files.test/mine.whl\n',
      'plain.txt': 'a',
    },
  )
  assert.match(
    summary,
    /\nPackages of package-lock\.json: @s\/new 1\.0\.0 added, a 1\.0\.0 → 2\.0\.0, gone 1\.0\.0 removed\n/,
  )
  assert.match(summary, /\nPackages of requirements\.txt: mine .*files\.test.* added\nIf you approve/)
  assert.doesNotMatch(summary, /correct-horse-battery|Packages of plain/)
})

test('what was installed is shown, however long the rest of a summary is', async (t) => {
  const others = Array.from({ length: 25 }, (_, i) => [`${i}-${'x'.repeat(120)}.txt`, 'a'])
  const added = Array.from({ length: 40 }, (_, i) => [`${'p'.repeat(90)}${i}`, '1.0.0'])
  const summary = await summaryAfter(
    t,
    { 'package-lock.json': lock({}) },
    { 'package-lock.json': lock(Object.fromEntries(added)), ...Object.fromEntries(others) },
  )
  assert.match(summary, /\nPackages of package-lock\.json: p+0 1\.0\.0 added, .* \d\d more\nIf you/)
  assert.ok(Buffer.byteLength(summary) <= 4_000, String(Buffer.byteLength(summary)))
})

test('an invisible character in the name of a package is shown', async (t) => {
  const summary = await summaryAfter(
    t,
    { 'package-lock.json': lock({}) },
    { 'package-lock.json': lock({ 'a\u202eb\u200b\n"': '1.0.0' }) },
  )
  const [line] = summary.split('\n').filter((one) => one.startsWith('Packages'))
  assert.match(line ?? '', /: "a\\u202eb\\u200b\\n\\"" 1\.0\.0 added$/)
})
