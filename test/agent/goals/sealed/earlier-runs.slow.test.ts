/** Runs in a folder in which an earlier run has left changes: checks go by the start of that one. */
import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore, processExecutor, type EventPayloads, type Executor, type JsonObject,
  type RunDetails, type RunEngine, type SealedMode,
} from 'runwright/agent'
import {
  follow, keepOpen, openEngine, payloads, scratch, testProvider,
} from '../../../helpers/engine.js'
import { put } from '../support.js'

/** What a run does in an iteration; null removes a file. */
type Work = { readonly [path: string]: string | null }

const TEST = 'test/total.test.js'
const CODE = 'src/total.js'
const WRONG = 'exports.total = (items) => items.length\n'
const RIGHT = 'exports.total = (items) => items.reduce((sum, item) => sum + item, 0)\n'
const HONEST = `const assert = require('node:assert')
const { test } = require('node:test')
const { total } = require('../src/total')
test('adds up', () => assert.equal(total([2, 3]), 5))
test('nothing', () => assert.equal(total([]), 0))
`
/** What the run would like the test to be. */
const EASIER = HONEST.replace('assert.equal(total([2, 3]), 5)', 'assert.ok(total([2, 3]))')
const PROJECT = { 'package.json': '{"name": "shop"}', [CODE]: WRONG, [TEST]: HONEST }

interface Ended {
  readonly details: RunDetails
  readonly checks: readonly EventPayloads['goal_check'][]
  readonly first: EventPayloads['goal_check']
}

/** One folder in which runs work one after the other. */
class Folder {
  readonly cwd: string
  readonly store: MemoryStore = keepOpen(new MemoryStore())
  readonly mode: SealedMode
  engine!: RunEngine
  /** What the model does next, by iteration. */
  work: Work[] = []
  readonly #t: TestContext
  readonly #copies: string

  private constructor(t: TestContext, mode: SealedMode) {
    this.#t = t
    this.mode = mode
    this.cwd = scratch(t)
    this.#copies = scratch(t)
  }

  static async open(t: TestContext, mode: SealedMode = 'prefer'): Promise<Folder> {
    const folder = new Folder(t, mode)
    await put(folder.cwd, PROJECT)
    await folder.start()
    return folder
  }

  async start(executor: Executor = processExecutor()): Promise<void> {
    const { engine } = await openEngine(this.#t, {
      cwd: this.cwd,
      store: this.store,
      checkpoints: 'auto',
      sealedChecks: this.mode,
      executor,
      workspaceFolder: this.#copies,
      detectStuck: false,
      providers: [
        testProvider(({ messages }) => {
          if (messages.at(-1)?.role !== 'user') return { text: 'done' }
          const calls = Object.entries(this.work.shift() ?? {}).map(([path, content]) =>
            content === null
              ? { tool: 'bash', args: { command: `rm ${path}` } }
              : { tool: 'write_file', args: { path, content } },
          )
          return calls.length === 0 ? { text: 'nothing' } : { calls }
        }),
      ],
    })
    this.engine = engine
  }

  async run(work: readonly Work[], request: JsonObject = {}): Promise<Ended> {
    this.work = [...work]
    const goal = { goal: 'node-test', cwd: this.cwd, max_iterations: Math.max(1, work.length) }
    const { details } = await this.engine.create({ ...goal, ...request })
    return await this.end(details)
  }

  async retry({ details: { run_id } }: Ended, work: readonly Work[]): Promise<Ended> {
    this.work = [...work]
    return await this.end(await this.engine.retry(run_id))
  }

  async fork(
    { details: { run_id } }: Ended,
    work: readonly Work[],
    request: JsonObject = {},
  ): Promise<Ended> {
    this.work = [...work]
    const fork = { workspace: 'in_place', max_iterations: Math.max(1, work.length), ...request }
    return await this.end((await this.engine.fork(run_id, fork)).details)
  }

  async end({ run_id }: RunDetails): Promise<Ended> {
    const checks = payloads(await follow(this.engine, run_id), 'goal_check')
    return { details: await this.engine.get(run_id), checks, first: checks[0]! }
  }

  read(path: string): string {
    return readFileSync(join(this.cwd, path), 'utf8')
  }

  write(path: string, content: string): void {
    writeFileSync(join(this.cwd, path), content)
  }
}

const REFUSED = /^sealed check: 1 of 2 tests fails?; as at the start: test\/total\.test\.js$/

/** A run that edits the test, and so fails. */
async function edited(folder: Folder): Promise<Ended> {
  const ended = await folder.run([{ [TEST]: EASIER }])
  assert.equal(ended.details.status, 'failed')
  const isRequired = folder.mode === 'require'
  assert.match(ended.checks.at(-1)!.reason, isRequired ? /^tests changed/ : REFUSED)
  assert.equal(folder.read(TEST), EASIER)
  return ended
}

for (const mode of ['prefer', 'require'] as const) {
  test(`a retry is not achieved by a test that its source has edited (${mode})`, async (t) => {
    const folder = await Folder.open(t, mode)
    const source = await edited(folder)
    const idle = await folder.retry(source, [])
    assert.equal(idle.details.status, 'failed')
    assert.match(idle.first.reason, REFUSED)
    assert.equal(idle.first.sealed_unavailable, undefined)
    const fixed = await folder.retry(source, [{ [CODE]: RIGHT }])
    assert.match(fixed.first.reason, REFUSED)
    assert.equal(fixed.details.status, 'achieved')
    assert.equal(fixed.details.assurance?.by, 'tests')
    assert.equal(fixed.details.assurance.sealed, true)
    // The run itself has changed the code alone.
    const { changes } = await folder.engine.workspaces.changes(fixed.details.run_id)
    assert.deepEqual(changes.map(({ path }) => path), [CODE])
    assert.equal(folder.read(TEST), EASIER)
  })
}

for (const at of ['start', { iteration: 1 }, 'end'] as const) {
  test(`nor is a fork in place at ${JSON.stringify(at)}`, async (t) => {
    const folder = await Folder.open(t)
    const source = await edited(folder)
    if (at === 'start') folder.write(TEST, HONEST)
    const idle = await folder.fork(source, [], { at })
    assert.equal(idle.details.status, 'failed')
    if (at !== 'start') assert.match(idle.first.reason, REFUSED)
    const fixed = await folder.fork(source, [{ [CODE]: RIGHT }], { at })
    assert.equal(fixed.details.status, 'achieved')
    assert.equal(fixed.details.assurance?.sealed, true)
  })
}

test('a fork in place may allow what its source was refused', async (t) => {
  const folder = await Folder.open(t)
  const source = await edited(folder)
  const fork = await folder.fork(source, [], { may_change: [TEST] })
  assert.equal(fork.first.reason, 'all 2 tests pass')
  assert.equal(fork.details.status, 'achieved')
  assert.deepEqual(fork.details.allowed, [TEST])
})

test('nor is a new run in the folder, be it in a copy', async (t) => {
  const folder = await Folder.open(t)
  await edited(folder)
  for (const workspace of ['in_place', 'isolated']) {
    const idle = await folder.run([], { workspace })
    assert.equal(idle.details.status, 'failed', workspace)
    assert.match(idle.first.reason, REFUSED)
  }
  const fixed = await folder.run([{ [CODE]: RIGHT }])
  assert.equal(fixed.details.status, 'achieved')
})

test('may_change accepts what an earlier run has left, and so does its deletion', async (t) => {
  const folder = await Folder.open(t)
  await edited(folder)
  const allowed = await folder.run([], { may_change: [TEST] })
  assert.deepEqual([allowed.details.status, allowed.details.allowed], ['achieved', [TEST]])
  await folder.engine.delete(allowed.details.run_id)
  assert.match((await folder.run([])).first.reason, REFUSED)
  for (const { run_id } of (await folder.engine.list()).runs) await folder.engine.delete(run_id)
  assert.equal((await folder.run([])).details.status, 'achieved')
})

test('a file that a person has edited since is part of the new start', async (t) => {
  const folder = await Folder.open(t)
  const source = await edited(folder)
  folder.write(TEST, `${EASIER}// agreed\n`)
  const retry = await folder.retry(source, [])
  assert.equal(retry.details.status, 'achieved')
  assert.equal(retry.details.iteration, 0)
})

test('a chain of runs has the start of its first one', async (t) => {
  const folder = await Folder.open(t)
  await edited(folder)
  const note = { 'notes.md': 'tried\n' }
  const second = await folder.run([note])
  assert.match(second.checks.at(-1)!.reason, REFUSED)
  const third = await folder.run([])
  assert.equal(third.details.status, 'failed')
  assert.match(third.first.reason, REFUSED)
  const fourth = await folder.run([{ [CODE]: RIGHT }])
  assert.equal(fourth.details.status, 'achieved')
})

test('code of the earlier run stays, and is enough if it is right', async (t) => {
  const folder = await Folder.open(t)
  const strict = HONEST.replace('total([]), 0', 'total([]), 1')
  const source = await folder.run([{ [CODE]: RIGHT, [TEST]: strict }])
  assert.equal(source.details.status, 'failed')
  const idle = await folder.retry(source, [])
  // In place, the test of the earlier run counts as well.
  assert.equal(idle.first.reason, '1 of 2 tests fail')
  const fixed = await folder.retry(source, [{ [TEST]: HONEST }])
  assert.equal(fixed.details.status, 'achieved')
  assert.equal(folder.read(CODE), RIGHT)
})

test('tests that the earlier run has removed must pass', async (t) => {
  const folder = await Folder.open(t)
  await put(folder.cwd, { 'test/other.test.js': "require('node:test').test('other', () => {})\n" })
  const source = await folder.run([{ [TEST]: null }])
  assert.match(source.checks.at(-1)!.reason, /^sealed check: 1 of 3 tests fail/)
  const idle = await folder.retry(source, [])
  assert.match(idle.first.reason, /^sealed check: 1 of 3 tests fail/)
  const fixed = await folder.retry(source, [{ [CODE]: RIGHT }])
  assert.equal(fixed.details.status, 'achieved')
})

test('a start whose tests could not be loaded counts as one that could', async (t) => {
  const folder = await Folder.open(t)
  rmSync(join(folder.cwd, CODE))
  const source = await folder.run([{ [CODE]: WRONG, [TEST]: EASIER }])
  assert.match(source.checks.at(-1)!.reason, REFUSED)
  const idle = await folder.retry(source, [])
  assert.match(idle.first.reason, REFUSED)
  assert.equal(idle.first.sealed_unavailable, undefined)
  const fixed = await folder.retry(source, [{ [CODE]: RIGHT }])
  assert.equal(fixed.details.status, 'achieved')
  assert.equal(fixed.details.assurance?.sealed, true)
})

test('what the verdict of an achieved run covers is accepted', async (t) => {
  const folder = await Folder.open(t)
  const more = `${HONEST}test('one', () => assert.equal(total([1]), 1))\n`
  const source = await folder.run([{ [CODE]: RIGHT, [TEST]: more }])
  assert.equal(source.details.status, 'achieved')
  assert.deepEqual(source.details.changed_tests, [TEST])
  // The next run has three tests to keep.
  const next = await folder.run([{ [TEST]: HONEST }], { goal: 'shell: false' })
  assert.equal(next.details.status, 'failed')
  const last = await folder.run([])
  assert.equal(last.details.status, 'achieved')
  assert.deepEqual(last.details.changed_tests, [TEST])
  assert.equal(last.first.counts?.total, 2)
})

test('what it holds back is not', async (t) => {
  const folder = await Folder.open(t)
  const script = { 'package.json': '{"name": "shop", "scripts": {"test": "node --test"}}' }
  await put(folder.cwd, script)
  const easy = { 'package.json': script['package.json'].replace('--test', '--test test/n*') }
  await put(folder.cwd, { 'test/none.js': "require('node:test').test('none', () => {})\n" })
  const source = await folder.run([{ ...easy, [CODE]: RIGHT }], { goal: 'npm-test' })
  assert.equal(source.details.status, 'achieved', source.details.final_state.goal_reason)
  assert.deepEqual(source.details.held_back, ['package.json'])
  const next = await folder.run([{ [CODE]: WRONG }], { goal: 'shell: false' })
  assert.equal(next.details.status, 'failed')
  const last = await folder.run([], { goal: 'npm-test' })
  assert.equal(last.details.status, 'failed')
  assert.match(last.first.reason, /as at the start: package\.json: scripts\.test/)
})

/** Its commands end when they are stopped. */
const HANGING: Executor = {
  name: 'hanging',
  killMarked: () => Promise.resolve(0),
  run: (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    }),
}

test('a run that is stopped before its first check goes by the same start', async (t) => {
  const folder = await Folder.open(t)
  const source = await edited(folder)
  await folder.engine.close()
  await folder.start(HANGING)
  const { run_id } = await folder.engine.retry(source.details.run_id)
  const before = await follow(folder.engine, run_id, ({ kind }) => kind === 'checkpoint')
  assert.equal(payloads(before, 'goal_check').length, 0)
  await folder.engine.close()
  await folder.start()
  // The next engine needs its source no longer.
  await folder.engine.delete(source.details.run_id)
  const retry = await folder.end(await folder.engine.get(run_id))
  assert.match(retry.first.reason, REFUSED)
  assert.equal(retry.details.status, 'failed')
})
