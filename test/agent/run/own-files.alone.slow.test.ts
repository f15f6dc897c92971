/**
 * Faults on the engine's own files. What a run without faults does is watched first: every kind of
 * call for every kind of place is then made to fail, with codes in turn. The run must come to the
 * same end as without the fault; if it waits meanwhile, the engine's check says so.
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  FileStore, processExecutor, RunEngine, type Executor, type JsonObject, type RunDetails,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { nextTurn } from '../../../lib/internal/time.js'
import { choice, oneOfEach, pairs } from '../../helpers/choice.js'
import { follow, payloads, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { OwnFiles } from '../../helpers/own-files.js'

/** Of a disk, and of a place that nobody else has changed. */
const FAULTS = ['EIO', 'EROFS', 'ENOSPC', 'EDQUOT', 'ESTALE', 'ENOTCONN', 'ETIMEDOUT', 'ENODEV']
const DENIALS = ['EACCES', 'EPERM', 'ENOENT']

/** Files of the run, which happen to lie in a copy: what their disk answers is a result. */
const OF_THE_RUN = /^\S+ copies\/\*\/folder/
/** Places that no command can have changed. */
const IN_OWN_PLACE = new RegExp(
  [
    '^mkdtemp tmp', '^open tmp/runwright-command', '^(?:mkdir|writeFile) tmp/runwright-check',
    '^(?:mkdir|writeFile|rename) copies(?:/\\.sealed)?(?:/\\.new-\\*|/\\*$|$)',
  ].join('|'),
)

/** Runs commands as processes also in copies, without a sandbox. */
function plainExecutor(): Executor {
  const real = processExecutor()
  return {
    name: 'process',
    run: (command, options) => real.run(command, options),
    killMarked: () => Promise.resolve(0),
  }
}

/** Turns of the model; the last one is empty. */
type Turns = readonly Said['calls'][]

const WRITES: Said['calls'] = [{ tool: 'write_file', args: { path: 'done', content: 'yes' } }]

/** A call of `try_patches` that makes one patch. */
function tries(command: string, watch: boolean): Said['calls'] {
  const edits = [{ path: 'a.txt', old_text: 'a', new_text: 'b' }]
  return [{ tool: 'try_patches', args: { patches: [{ edits }], command, watch } }]
}

interface World {
  readonly files: Readonly<Record<string, string>>
  readonly request: JsonObject
  readonly turns: Turns
}

/** With held-out tests, trials and a copy for the run. */
const PLAIN: World = {
  files: { 'check.sh': 'test -f done\n', 'a.txt': 'a' },
  request: {
    goal: 'shell: sh check.sh',
    workspace: 'isolated',
    holdout: { files: { 'held/check.sh': 'test -f done\n' }, command: 'sh held/check.sh' },
  },
  turns: [tries('grep -q b a.txt', false), WRITES],
}

/** With a test runner, of which reports and traces are read. */
const TESTED: World = {
  files: {
    'check.test.js':
      "require('node:test')('is done', () => " +
      "require('node:assert').ok(require('node:fs').existsSync('done')))\n",
    'script.js': 'process.exitCode = 1\n',
    'a.txt': 'a',
  },
  request: { goal: 'shell: node --test check.test.js' },
  turns: [tries('node script.js', true), WRITES],
}

/** An engine whose runs meet faults, one run at a time. */
class Bench {
  readonly own: OwnFiles
  readonly engine: RunEngine
  readonly #root: string
  readonly #world: World
  #runs = 0

  private constructor(root: string, world: World, own: OwnFiles, engine: RunEngine) {
    this.#root = root
    this.#world = world
    this.own = own
    this.engine = engine
  }

  static async open(t: TestContext, world: World): Promise<Bench> {
    const root = scratch(t)
    const [tmp, data, copies, work] = ['tmp', 'data', 'copies', 'work'].map((name) => {
      mkdirSync(join(root, name))
      return join(root, name)
    }) as [string, string, string, string]
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = tmp
    const own = new OwnFiles({ tmp, data, copies })
    const engine = await RunEngine.open({
      store: new FileStore({ directory: data, sync: 'none' }, own.disk()),
      roots: [work],
      executor: plainExecutor(),
      defaultModel: 'test:m',
      workspaceFolder: copies,
      sealedChecks: 'require',
      providers: [
        testProvider(({ run }) => ({ calls: world.turns[run.turn] ?? [] })), repairModel(),
      ],
    })
    t.after(async () => {
      own[Symbol.dispose]()
      await engine.close()
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
    })
    return new Bench(root, world, own, engine)
  }

  async begin(): Promise<RunDetails> {
    const cwd = join(this.#root, 'work', String(this.#runs++), 'folder')
    mkdirSync(cwd, { recursive: true })
    // Content that is in no store yet; and so many files that threads make and remove copies.
    const many = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`${i}.txt`, 'x']))
    const files = {
      ...this.#world.files, ...many, 'run.txt': cwd, 'large.txt': 'x'.repeat(100_000),
    }
    for (const [path, text] of Object.entries(files)) writeFileSync(join(cwd, path), text)
    const limits = { max_iterations: 2, max_seconds: 3_600 }
    return (await this.engine.create({ ...this.#world.request, cwd, ...limits })).details
  }

  /** What is wrong, as the engine's check tells it once a run waits; null when the run ended. */
  async problem(runId: string): Promise<string | null> {
    for (;;) {
      const error = await this.engine.check().then(() => null, (reason: Error) => reason)
      if (error !== null) return error.message
      if ((await this.engine.get(runId)).ended_at !== null) return null
      await nextTurn()
    }
  }

  /** The calls of a run that meets no fault. */
  async calls(): Promise<readonly string[]> {
    this.own.seen.clear()
    const { run_id } = await this.begin()
    await this.achieved(run_id)
    return [...this.own.seen].sort()
  }

  /** Follows a run to its end, which must be that of a run without faults. */
  async achieved(runId: string): Promise<void> {
    const events = await follow(this.engine, runId)
    assertInvariants(events)
    const { assurance, end_reason, status } = await this.engine.get(runId)
    const told = JSON.stringify([end_reason, payloads(events, 'error')])
    assert.equal(status, 'achieved', told)
    assert.equal(assurance?.sealed, true)
    assert.equal(assurance.holdout, 'holdout' in this.#world.request)
    const results = payloads(events, 'tool_result')
    assert.deepEqual(results.map((result) => result.exit_code), [0, 0])
  }
}

/** Runs of which a call meets a fault: the run must go on as if there had been none. */
async function survive(bench: Bench, call: string, code: string): Promise<void> {
  bench.own.fail(call, code)
  try {
    const begun = await bench.begin().catch((error: Error & { code?: string }) => {
      // Nothing was started.
      assert.equal(error.code, 'ERR_AGENT_STORE_UNAVAILABLE')
      bench.own.heal()
    })
    const { run_id } = begun ?? (await bench.begin())
    if (begun === undefined) bench.own.fail(call, code)
    await bench.problem(run_id)
    bench.own.heal()
    await bench.achieved(run_id)
  } catch (error) {
    throw new Error(`${code} on ${call}`, { cause: error })
  } finally {
    bench.own.heal()
  }
}

/** The operation of a call, and where the engine keeps its files there. */
function kindOf(call: string): string {
  return call.split('/', 1)[0]!
}

test(`calls for own files meet faults, and runs come to the same end: ${choice}`, async (t) => {
  const bench = await Bench.open(t, PLAIN)
  const calls = (await bench.calls()).filter((call) => !OF_THE_RUN.test(call))
  assert.ok(calls.length > 70, 'the calls are watched')
  const own = calls.filter((call) => IN_OWN_PLACE.test(call))
  for (const [call, code] of [
    ...pairs(oneOfEach(calls, kindOf), FAULTS),
    ...pairs(oneOfEach(own, kindOf), DENIALS),
  ]) {
    await survive(bench, call, code)
  }
})

test('reports of tests, and what they ran, are read once a disk is well again', async (t) => {
  const bench = await Bench.open(t, TESTED)
  const calls = await bench.calls()
  for (const [call, code] of [
    ['writeFile tmp/runwright-check-*/recorder.cjs', 'EACCES'],
    ['open tmp/runwright-check-*/trace-*.jsonl', 'EIO'],
    ['open tmp/runwright-check-*/report-*.jsonl', 'ESTALE'],
  ] as const) {
    assert.ok(calls.includes(call), `${call} is none of ${calls.join(', ')}`)
    await survive(bench, call, code)
    assert.ok(bench.own.refused > 0)
  }
})

/** One call of each kind that a run waits for. */
const WAITED_FOR = [
  'mkdtemp tmp/runwright-command-*',
  'mkdtemp tmp/runwright-check-*',
  'opendir tmp/runwright-check-*/exits',
  'writeFile copies/.new-*/copy.json',
  'thread.copy copies/.sealed/.new-*/folder',
  'mkdir copies/.sealed/*/.home',
  'realpath copies/.sealed/*/.start',
  'open copies/.sealed/*/folder/…',
  'writeFile copies/.sealed/*/folder/…',
  'thread.remove copies/.sealed/.old-*',
  'store.read data/holdouts/*',
  'store.write data/objects/*.new',
] as const

test('a run that waits for a disk says so in the check of the engine, and can be aborted', async (t) => {
  const bench = await Bench.open(t, PLAIN)
  for (const call of WAITED_FOR) {
    const { run_id } = await bench.begin()
    bench.own.fail(call, 'EIO')
    assert.match((await bench.problem(run_id)) ?? '', /^waiting for the machine: /, call)
    await bench.engine.abort(run_id)
    const events = await follow(bench.engine, run_id)
    bench.own.heal()
    assertInvariants(events)
    assert.equal((await bench.engine.get(run_id)).status, 'aborted', call)
    await bench.engine.check()
  }
})

test('errors that are bugs end a run at once', async (t) => {
  const bench = await Bench.open(t, PLAIN)
  for (const [call, code] of [
    ['mkdtemp tmp/runwright-check-*', 'EBADF'],
    ['writeFile copies/.new-*/copy.json', 'EINVAL'],
    ['store.read data/holdouts/*', 'EBADF'],
  ] as const) {
    const { run_id } = await bench.begin()
    bench.own.fail(call, code)
    const events = await follow(bench.engine, run_id)
    bench.own.heal()
    assertInvariants(events)
    assert.equal((await bench.engine.get(run_id)).status, 'failed', call)
  }
})
