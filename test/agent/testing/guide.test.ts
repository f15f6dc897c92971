import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

test('the samples of the guide to testing agents are tests, and pass', (t) => {
  const guide = readFileSync(join(root, 'docs/testing-agents.md'), 'utf8')
  const samples = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, sample = '']) => sample)
  assert.equal(samples.length, 3)
  // Inside the package, so that the samples import it by its name.
  const folder = mkdtempSync(join(root, 'test/.guide-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const files = samples.map((sample, i) => {
    const path = join(folder, `sample-${i}.ts`)
    writeFileSync(path, sample)
    return path
  })
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--conditions=runwright-source', '--import', 'tsx', '--test', '--test-reporter=tap', ...files],
    { encoding: 'utf8', env, cwd: root },
  )
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  assert.ok(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]) > 40)
})
