/** Sealed checks in whole runs: what a run reports, and what is on the disk. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  FileStore,
  type AgentEvent,
  type EngineOptions,
  type EventPayloads,
  type JsonObject,
  type RunDetails,
  type RunEngine,
} from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider } from '../../../helpers/engine.js'

type Files = Readonly<Record<string, string>>

/** `add()` subtracts; the test of it is in a folder whose name tells nothing. */
const PROJECT: Files = {
  'package.json': '{ "type": "commonjs" }\n',
  'lib/add.js': 'exports.add = (a, b) => a - b\n',
  'qa/sums.js': `
const test = require('node:test')
const assert = require('node:assert')
const { readFileSync } = require('node:fs')
const { add } = require('../lib/add.js')
test('adds', () => {
  for (const [a, b, sum] of JSON.parse(readFileSync(__dirname + '/../data/sums.json', 'utf8')))
    assert.equal(add(a, b), sum)
})
`,
  'data/sums.json': '[[1, 2, 3], [5, 5, 10]]\n',
}
const FIXED: Files = { 'lib/add.js': 'exports.add = (a, b) => a + b\n' }
const GOAL = 'shell: node --test qa/sums.js'

interface Outcome {
  readonly details: RunDetails
  readonly checks: readonly EventPayloads['goal_check'][]
  readonly cwd: string
  readonly engine: RunEngine
}

interface Scenario {
  readonly files?: Files
  readonly goal?: string
  /** Commands of the model, one for each iteration. */
  readonly commands?: readonly string[]
  readonly request?: JsonObject
  readonly options?: Partial<EngineOptions>
}

async function pursue(t: TestContext, scenario: Scenario): Promise<Outcome> {
  const { files = PROJECT, goal = GOAL, commands = [], request = {}, options = {} } = scenario
  const cwd = scratch(t)
  put(cwd, files)
  const provider = testProvider((_, call) => {
    const command = commands[call / 2]
    return command === undefined || call % 2 === 1
      ? {}
      : { calls: [{ tool: 'bash', args: { command } }] }
  })
  const { engine } = await openEngine(t, {
    cwd, providers: [provider], sealedChecks: 'prefer', checkpoints: 'auto', ...options,
  })
  const limits = { max_iterations: Math.max(1, commands.length) }
  const { details, events } = await runToEnd(engine, { goal, ...limits, ...request })
  return { details, checks: checksOf(events), cwd, engine }
}

function put(cwd: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    fs.mkdirSync(dirname(join(cwd, path)), { recursive: true })
    fs.writeFileSync(join(cwd, path), text)
  }
}

function checksOf(events: readonly AgentEvent[]): readonly EventPayloads['goal_check'][] {
  return events.flatMap((event) => (event.kind === 'goal_check' ? [event.payload] : []))
}

/** Writes files, in a command of the model. */
function write(files: Files): string {
  return Object.entries(files)
    .map(([path, text]) => `mkdir -p "$(dirname '${path}')" && cat > '${path}' <<'END'\n${text}\nEND`)
    .join('\n')
}

test('a goal is achieved in a sealed copy, and the details say so', async (t) => {
  const { details, checks } = await pursue(t, { commands: [write(FIXED)] })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.deepEqual(checks.map(({ achieved }) => achieved), [false, true])
  assert.deepEqual(checks.map(({ assurance }) => [assurance?.by, assurance?.sealed]), [
    ['tests', false], ['tests', true],
  ])
  for (const { verified_by } of checks) assert.equal(verified_by, 'command')
  assert.deepEqual(details.assurance, checks[1]!.assurance)
  assert.equal(details.check_files, 1)
})

test('a goal that is met already ends after one check', async (t) => {
  const { details, checks } = await pursue(t, { files: { ...PROJECT, ...FIXED } })
  assert.equal(details.status, 'achieved')
  assert.deepEqual(checks.map(({ achieved, assurance }) => [achieved, assurance?.sealed]), [
    [true, true],
  ])
})

test('files that belong to the check by name are listed with the reason', async (t) => {
  const { details, engine } = await pursue(t, { commands: [write(FIXED)] })
  const { files, observed, sealed_unavailable } = await engine.checkFiles(details.run_id)
  assert.deepEqual([observed, sealed_unavailable], [true, null])
  assert.deepEqual(files.map(({ path }) => path), ['qa/sums.js'])
  assert.notEqual(files[0]!.reason, '')
})

for (const [what, command, path] of [
  ['a test', `echo "require('node:test').test('adds', () => {})" > qa/sums.js`, 'qa/sums.js'],
  ['what a test reads', 'echo "[]" > data/sums.json', 'data/sums.json'],
] as const) {
  test(`a changed ${what} is put back, and named`, async (t) => {
    const { details, checks } = await pursue(t, { commands: [command] })
    assert.equal(details.status, 'failed')
    const reason = `sealed check: 1 of 1 tests fail; as at the start: ${path}`
    assert.equal(checks.at(-1)!.reason, reason)
  })
}

test('what is right only outside of the folder does not count', async (t) => {
  const outside = join(scratch(t), 'add.js')
  const commands = [
    `${write({ 'lib/add.js': `
try { module.exports = require(${JSON.stringify(outside)}) } catch { exports.add = () => 0 }` })}
printf 'exports.add = (a, b) => a + b' > ${outside}`,
  ]
  const { details, checks } = await pursue(t, { commands })
  assert.equal(details.status, 'failed')
  assert.match(checks.at(-1)!.reason, /^sealed check: /)
  assert.equal(checks.at(-1)!.assurance?.sealed, true)
})

test('a check that cannot run in a copy goes on in place, and the cause is told', async (t) => {
  const cwd = scratch(t)
  const files = {
    ...PROJECT,
    // The copy is another folder.
    'qa/place.js': `if (__dirname !== ${JSON.stringify(join(cwd, 'qa'))}) process.exit(127)\n`,
    'check.sh': `node ${join(cwd, 'qa/place.js')} && cd ${cwd} && node --test qa/sums.js\n`,
  }
  put(cwd, files)
  const provider = testProvider((_, call) =>
    call === 0 ? { calls: [{ tool: 'bash', args: { command: write(FIXED) } }] } : {},
  )
  const { engine } = await openEngine(t, { cwd, providers: [provider], sealedChecks: 'prefer' })
  const { details, events } = await runToEnd(engine, { goal: 'shell: sh check.sh' })
  const checks = checksOf(events)
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.match(checks[0]!.sealed_unavailable!, /./)
  assert.deepEqual(checks.map(({ assurance }) => assurance?.sealed), [false, false])
  const { sealed_unavailable } = await engine.checkFiles(details.run_id)
  assert.equal(sealed_unavailable, checks[0]!.sealed_unavailable)
})

test('settings above the folder are not in the copy, and the check goes on in place', async (t) => {
  const above = scratch(t)
  const cwd = join(above, 'project')
  put(above, { 'base.json': '{}' })
  put(cwd, { ...PROJECT, 'check.js': `
require('node:fs').readFileSync(require('node:path').join(__dirname, '../base.json'))
if (require('./lib/add.js').add(1, 1) !== 2) process.exit(1)` })
  const provider = testProvider((_, call) =>
    call === 0 ? { calls: [{ tool: 'bash', args: { command: write(FIXED) } }] } : {},
  )
  const { engine } = await openEngine(t, { cwd, providers: [provider], sealedChecks: 'prefer' })
  const { details, events } = await runToEnd(engine, { goal: 'shell: node check.js' })
  assert.equal(details.status, 'achieved', details.final_state.goal_reason)
  assert.match(checksOf(events)[0]!.sealed_unavailable!, /a path was not found .*base\.json/)
})

test('where sealed checks are required, such a check ends the run', async (t) => {
  const cwd = scratch(t)
  put(cwd, { ...PROJECT, 'check.sh': `cd ${cwd} && node --test qa/sums.js\n` })
  const { engine } = await openEngine(t, { cwd, sealedChecks: 'prefer' })
  const request = { goal: 'shell: sh check.sh', sealed_checks: 'require' }
  const { details } = await runToEnd(engine, request)
  assert.deepEqual([details.status, details.end_reason], ['failed', 'goal_check_error'])
  assert.match(details.error!.message, /sealed checks are required/)
})

test('a request can only raise what the host asks for', async (t) => {
  const low = await pursue(t, { commands: [write(FIXED)], request: { sealed_checks: 'off' } })
  assert.equal(low.details.assurance?.sealed, true)
  const options = { sealedChecks: 'off' } as const
  const high = { commands: [write(FIXED)], options, request: { sealed_checks: 'prefer' } }
  assert.equal((await pursue(t, high)).details.assurance?.sealed, true)
  const off = await pursue(t, { commands: [write(FIXED)], options })
  assert.equal(off.details.assurance?.sealed, false)
})

test('a new dependency is refused, unless the request allows it', async (t) => {
  const files = { ...PROJECT, 'node_modules/sum/index.js': 'module.exports = (a, b) => a - b\n' }
  const commands = [
    write({
      'node_modules/sum/index.js': 'module.exports = (a, b) => a + b',
      'lib/add.js': "exports.add = require('sum')",
    }),
  ]
  const { details } = await pursue(t, { files, commands })
  assert.equal(details.status, 'failed')
  const { goal_reason } = details.final_state
  assert.match(goal_reason, /node_modules\/sum was modified.*allow_dependency_changes/)
  const allowed = await pursue(t, { files, commands, request: { allow_dependency_changes: true } })
  assert.equal(allowed.details.status, 'achieved', allowed.details.final_state.goal_reason)
})

test('tests that a run writes have to pass as well', async (t) => {
  const failing = `
const test = require('node:test')
test('mine', () => { throw new Error('no') })`
  const files = { ...PROJECT, 'test/old.test.js': PROJECT['qa/sums.js']! }
  const commands = [write({ ...FIXED, 'test/new.test.js': failing })]
  const { details } = await pursue(t, { files, commands, goal: 'node-test' })
  assert.equal(details.status, 'failed')
  assert.equal(details.final_state.goal_reason, '1 of 2 tests fail')
})

test('no copy is left when an engine is closed', async (t) => {
  const data = scratch(t)
  const store = new FileStore({ directory: data })
  const { details, engine } = await pursue(t, { commands: [write(FIXED)], options: { store } })
  assert.equal(details.status, 'achieved')
  await engine.close()
  const folder = join(data, 'workspaces/.sealed')
  assert.deepEqual(fs.existsSync(folder) ? fs.readdirSync(folder) : [], [])
})
