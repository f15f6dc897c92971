/** Scripts of the check that end themselves, or source the code that they test. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, processExecutor, type RunDetails } from 'runwright/agent'
import { follow, openEngine, payloads, scratch, testProvider } from '../../../helpers/engine.js'
import { put } from '../support.js'

type Files = { readonly [path: string]: string }

interface Ended {
  readonly details: RunDetails
  readonly reason: string
}

/** A run with one iteration, in which it writes files. */
async function run(t: TestContext, goal: string, files: Files, work: Files): Promise<Ended> {
  const { engine, cwd } = await openEngine(t, {
    store: new MemoryStore(),
    checkpoints: 'auto',
    sealedChecks: 'prefer',
    executor: processExecutor(),
    workspaceFolder: scratch(t),
    providers: [
      testProvider(({ messages }) => {
        if (messages.at(-1)?.role !== 'user') return { text: 'done' }
        const args = Object.entries(work).map(([path, content]) => ({ path, content }))
        return { calls: args.map((one) => ({ tool: 'write_file', args: one })) }
      }),
    ],
  })
  await put(cwd, files)
  const { details } = await engine.create({ goal, cwd, max_iterations: 1 })
  const checks = payloads(await follow(engine, details.run_id), 'goal_check')
  assert.equal(checks[0]?.achieved, false)
  return { details: await engine.get(details.run_id), reason: checks.at(-1)!.reason }
}

const WRONG = 'exports.total = (items) => items.length\n'
const RIGHT = 'exports.total = (items) => items.reduce((sum, item) => sum + item, 0)\n'
const LEAVES = `${WRONG}process.exit(0)\n`

/** Collects failures and ends itself. */
const HARNESS = `let bad = 0
exports.check = (name, run) => {
  try { run() } catch (error) { bad += 1; console.error(name, error.message) }
}
exports.done = () => process.exit(bad ? 1 : 0)
`
const CASES = `check('adds up', () => { if (total([2, 3]) !== 5) throw new Error(total([2, 3])) })
check('nothing', () => { if (total([]) !== 0) throw new Error(total([])) })
`
const ALONE = `const { total } = require('./src/total')
${HARNESS.replace('exports.check =', 'const check =').replace('exports.done =', 'const done =')}
${CASES}done()\n`
const uses = (harness: string): string => `const { total } = require('./src/total')
const { check, done } = require('${harness}')
${CASES}done()\n`

const NODE: readonly (readonly [what: string, files: Files])[] = [
  ['a script that ends itself', { 'run-tests.js': ALONE }],
  ['a harness in a folder of tests', {
    'run-tests.js': uses('./test/harness'), 'test/harness.js': HARNESS,
  }],
]

for (const [what, files] of NODE) {
  const goal = `shell: node ${Object.keys(files)[0]!}`
  const project = { ...files, 'src/total.js': WRONG }

  test(`${what} lets an honest fix pass`, async (t) => {
    const { details, reason } = await run(t, goal, project, { 'src/total.js': RIGHT })
    assert.equal(details.status, 'achieved', reason)
    assert.equal(details.assurance?.by, 'exit_code')
    assert.equal(details.assurance.sealed, true)
  })

  test(`${what} lets no code end it`, async (t) => {
    const { details, reason } = await run(t, goal, project, { 'src/total.js': LEAVES })
    assert.equal(details.status, 'failed')
    assert.match(reason, /src\/total\.js ended \S+ with process\.exit\(0\) before its end/)
  })
}

const LIBRARY = 'total() { echo $#; }\n'
const FIXED = 'total() { sum=0; for item; do sum=$((sum + item)); done; echo $sum; }\n'
const SHELL = `. ./lib.sh
[ "$(total 2 3)" = 5 ] || exit 1
[ "$(total)" = 0 ]
`

test('a library that a script sources is code under test', async (t) => {
  const files = { 'test.sh': SHELL, 'lib.sh': LIBRARY }
  const { details, reason } = await run(t, 'shell: sh test.sh', files, { 'lib.sh': FIXED })
  assert.equal(details.status, 'achieved', reason)
  assert.equal(details.assurance?.by, 'exit_code')
  assert.equal(details.assurance.sealed, true)
})
