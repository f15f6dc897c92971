/** Two models attempt two small repairs, twice each. A table says how often they achieved them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore, RunEngine } from 'runwright/agent'
import { evaluate, formatEvaluation } from 'runwright/agent/testing'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))

/** Writes a project with a bug and tests; returns its folder. */
function project(name: string, code: string, tests: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  writeFileSync(join(path, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(path, `${name}.js`), code)
  const head = `import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n`
  writeFileSync(join(path, `${name}.test.js`), head + tests)
  return path
}

const sum = project(
  'sum',
  'export const sum = (a, b) => a - b\n',
  `import { sum } from './sum.js'
test('one and two are three', () => assert.equal(sum(1, 2), 3))
test('two and two are four', () => assert.equal(sum(2, 2), 4))
`,
)
const clamp = project(
  'clamp',
  'export const clamp = (x, low, high) => (x < low ? low : x < high ? high : x)\n',
  `import { clamp } from './clamp.js'
test('within the bounds nothing changes', () => assert.equal(clamp(5, 1, 9), 5))
test('what is too low becomes the lower bound', () => assert.equal(clamp(0, 1, 9), 1))
test('what is too high becomes the upper bound', () => assert.equal(clamp(12, 1, 9), 9))
`,
)

// In place of a language model: a script that knows the first project alone.
const scripts = join(folder, 'scripts')
mkdirSync(scripts)
const fix = { path: 'sum.js', content: 'export const sum = (a, b) => a + b\n' }
const turns = [
  {
    calls: [{ tool: 'write_file', args: fix }],
    usage: { input_tokens: 900, output_tokens: 60 },
  },
  { text: 'Repaired.', usage: { input_tokens: 1000, output_tokens: 10 } },
  { text: 'I know no other way.', usage: { input_tokens: 1200, output_tokens: 10 } },
]
writeFileSync(join(scripts, 'sum.json'), JSON.stringify({ turns }))

try {
  const request = { goal: 'node-test', max_iterations: 2 }
  const report = await evaluate({
    tasks: [
      { name: 'sum', folder: sum, request },
      { name: 'clamp', folder: clamp, request },
    ],
    models: ['builtin:repair', 'scripted:sum.json'],
    attempts: 2,
    engine: (copies) => RunEngine.open({ store: new MemoryStore(), roots: [copies], scripts }),
    onAttempt: ({ task, model, attempt, outcome }) =>
      console.log(`${task}, ${model}, attempt ${attempt}: ${outcome}`),
  })
  console.log(`\n${formatEvaluation(report)}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
