import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pageOf } from './bench/page.js'
import { plotOf } from './bench/plot.js'
import type { Row } from './bench/results.js'
import { readSaved } from './bench/saved.js'
import { suites } from './bench/suites.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const saved = readSaved()
const row = (contender: string, median: number, met: boolean | null): Row => ({
  ...{ scenario: 'one | two', contender, median, min: median / 2, max: median * 2, unit: 'us' },
  ...{ ratio: met === null ? null : 1.5, cpu: 3, bar: met === null ? null : '<= 1.00x', met },
})

for (const [path, text] of pageOf(saved)) {
  test(`${path} is generated from the saved figures`, () => {
    assert.equal(readFileSync(join(root, path), 'utf8'), text)
  })
}

for (const { suite, results } of saved) {
  test(`the saved figures of ${suite.name} are complete`, () => {
    assert.equal(results.name, suite.name)
    assert.match(results.versions['node'] ?? '', /^v\d+\./)
    assert.ok(results.machine.cores > 0)
    for (const { scenario, contender, median, min, max, bar, met } of results.rows) {
      const name = `${scenario}, ${contender}`
      assert.ok(min <= median && median <= max, name)
      assert.equal(bar === null, met === null, name)
    }
    for (const { scenario } of suite.plots) {
      assert.ok(
        results.rows.some((one) => scenario.test(one.scenario)),
        `nothing to plot for ${scenario}`,
      )
    }
  })
}

test('a missed bar is shown in the summary and in its table', () => {
  const suite = suites[0]!
  const machine = { cpu: 'x', cores: 2, memoryGB: 1, platform: 'linux x64', pinned: false }
  const rows = [row('floor', 10, null), row('runwright', 15, false)]
  const page = pageOf([
    { suite, results: { name: suite.name, versions: { node: 'v20' }, machine, rows } },
  ])
  const text = page.get('docs/benchmarks.md')!
  assert.match(
    text,
    /- HTTP client, \*one \\\| two\*, runwright: &lt;= 1\.00x is missed, with 1\.50x/,
  )
  const cells = '**runwright** | 15.0 us | 7.50–30.0 | 1.50x | 3.00 us | &lt;= 1.00x: **missed**'
  assert.ok(text.includes(`| ${cells} |`))
  assert.match(text, /\[HTTP client\]\(#http-client\) \| 1 \| 0 \| 1 \|/)
})

test('a plot escapes its texts, and its bars fit the frame', () => {
  const svg = plotOf('a < b & c', [row('x<y', 100, null), row('runwright', 40, null)])
  assert.match(svg, /a &lt; b &amp; c/)
  assert.match(svg, /x&lt;y/)
  for (const [, x, width] of svg.matchAll(/<rect[^>]* x="(\d+)"[^>]* width="([\d.]+)"/g)) {
    assert.ok(Number(x) + Number(width) <= 720)
  }
})
