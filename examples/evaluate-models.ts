/** Two models attempt to repair two planted bugs, twice each. A table says how often they did. */
import {
  cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MemoryStore, RunEngine } from 'runwright/agent'
import { evaluate, formatEvaluation } from 'runwright/agent/testing'
import { repairModel } from 'runwright/repair'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
/** Small projects with tests, and a list of bugs for each. */
const fixtures = new URL('../test/fixtures/repair/', import.meta.url)

interface Bug {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** Copies a project and plants a bug in it. */
function planted(name: string, number: number): { readonly path: string; readonly bug: Bug } {
  const path = join(folder, name)
  cpSync(fileURLToPath(new URL(name, fixtures)), path, { recursive: true })
  const { bugs } = JSON.parse(readFileSync(join(path, 'fixture.json'), 'utf8')) as { bugs: Bug[] }
  const bug = bugs[number]!
  const file = join(path, bug.file)
  writeFileSync(file, readFileSync(file, 'utf8').replace(bug.find, () => bug.replace))
  rmSync(join(path, 'fixture.json'))
  return { path, bug }
}

const text = planted('text', 0)
const cache = planted('cache', 0)

// In place of a language model: a script that knows the first bug alone.
const scripts = join(folder, 'scripts')
mkdirSync(scripts)
const { file, find, replace } = text.bug
const fix = { path: file, old_text: replace, new_text: find }
const turns = [
  {
    calls: [{ tool: 'edit_file', args: fix }],
    usage: { input_tokens: 900, output_tokens: 60 },
  },
  { text: 'Repaired.', usage: { input_tokens: 1000, output_tokens: 10 } },
  { text: 'I know no other way.', usage: { input_tokens: 1200, output_tokens: 10 } },
]
writeFileSync(join(scripts, 'text.json'), JSON.stringify({ turns }))

try {
  const request = { goal: 'node-test', max_iterations: 2 }
  const report = await evaluate({
    tasks: [
      { name: text.bug.name, folder: text.path, request },
      { name: cache.bug.name, folder: cache.path, request },
    ],
    models: ['builtin:repair', 'scripted:text.json'],
    attempts: 2,
    engine: (copies) =>
      RunEngine.open({
        store: new MemoryStore(), roots: [copies], providers: [repairModel()], scripts,
      }),
    onAttempt: ({ task, model, attempt, outcome }) =>
      console.log(`${task}, ${model}, attempt ${attempt}: ${outcome}`),
  })
  console.log(`\n${formatEvaluation(report)}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
