/**
 * Runs the benchmarks one after the other and generates `docs/benchmarks.md`:
 *
 *     npm install --no-save --prefix test/peers
 *     npm run bench -- [part of a name]… [--quick] [--page-only]
 *
 * Names are those in `suites.ts`. Each prints its tables and saves its figures
 * in `results/NAME.json`, from which the page is generated. `--quick` takes fewer, shorter turns;
 * environment variables (TURNS, TURN_MS …) override the turns of both modes. `--page-only` measures
 * nothing. If a benchmark fails, its earlier figures are kept and the exit code is 1.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pageOf } from './page.js'
import type { Results } from './results.js'
import { readSaved, resultsPath } from './saved.js'
import { suites, type Suite } from './suites.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean' }, 'page-only': { type: 'boolean' } },
})

/** Runs one benchmark; false if it failed. */
function run({ name, script, quick }: Suite, json: string): boolean {
  console.log(`\n=== ${name} (${script})`)
  const env = { ...(flags.quick === true ? quick : {}), ...process.env }
  const args = ['--conditions=runwright-source', '--import', 'tsx', script, '--json', json]
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0 || !existsSync(json)) return false
  const results = JSON.parse(readFileSync(json, 'utf8')) as Results
  const day = new Date().toISOString().slice(0, 10)
  const dated: Results = { ...results, day, mode: flags.quick === true ? 'quick' : 'full' }
  mkdirSync(dirname(resultsPath(name)), { recursive: true })
  writeFileSync(resultsPath(name), `${JSON.stringify(dated, null, 1)}\n`)
  return true
}

const wanted = suites.filter(
  ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
)
if (wanted.length === 0) throw new Error(`unknown benchmark: ${words.join(', ')}`)
if (flags['page-only'] !== true) {
  if (!existsSync(join(root, 'test/peers/node_modules'))) {
    throw new Error('the peers are not installed: npm install --no-save --prefix test/peers')
  }
  const folder = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  try {
    for (const suite of wanted) {
      const startedAt = performance.now()
      const done = run(suite, join(folder, `${suite.name}.json`))
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      console.log(`\n${suite.name}: ${done ? 'done' : 'FAILED'} in ${seconds} s`)
      if (!done) process.exitCode = 1
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
for (const [path, text] of pageOf(readSaved())) writeFileSync(join(root, path), text)
