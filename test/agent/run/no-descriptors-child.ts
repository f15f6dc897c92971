import assert from 'node:assert/strict'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  MemoryStore,
  processExecutor,
  RunEngine,
  type Executor,
  type GoalSpec,
} from 'runwright/agent'
import { machineProblem } from '../../../lib/agent/exhaustion.js'
import { OutputPipe } from '../../../lib/agent/executors/output-pipe.js'
import { checkGoal } from '../../../lib/agent/goals/check.js'
import { captureBaseline } from '../../../lib/agent/goals/protected-files.js'
import { nextTurn, systemClock } from '../../../lib/internal/time.js'
import { runToEnd, testProvider, type Said } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import type { Life } from '../../helpers/mortal-child.js'

const held: number[] = []

/** Opens files until only `left` more can be opened. */
function exhaust(left: number): void {
  try {
    for (;;) held.push(openSync('/dev/null', 'r'))
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE')
  }
  for (let i = 0; i < left; i++) closeSync(held.pop()!)
}

function release(): void {
  for (const descriptor of held.splice(0)) closeSync(descriptor)
}

/** Resolves once something waits for the machine, and frees the descriptors. */
async function releaseOnWait(): Promise<void> {
  while (machineProblem() === null) await nextTurn()
  release()
}

const common = { mark: 'm', signal: new AbortController().signal }

const TURNS: readonly Said['calls'][] = [
  [{ tool: 'bash', args: { command: 'echo ran >> ran' } }],
  [
    { tool: 'read_file', args: { path: 'a.txt' } },
    { tool: 'list_files', args: { path: '.' } },
    { tool: 'search_files', args: { pattern: 'needle' } },
  ],
  [{ tool: 'write_file', args: { path: 'b.txt', content: 'one' } }],
  [{ tool: 'edit_file', args: { path: 'b.txt', old_text: 'one', new_text: 'two' } }],
  [],
]

/** Retries do not take their time here; limits do. */
const clock = {
  ...systemClock,
  setTimeout: (call: () => void, ms: number) => systemClock.setTimeout(call, ms > 5_000 ? ms : 1),
}

/** Starts a command with the pipe for its output, and with nothing left for the command itself. */
async function runWithoutAny(root: string): Promise<void> {
  const open = OutputPipe.open.bind(OutputPipe)
  OutputPipe.open = async (maxBytes) => {
    const pipe = await open(maxBytes)
    exhaust(0)
    return pipe
  }
  const limits = { cwd: root, env: {}, timeoutMs: 60_000, maxOutputBytes: 100, writable: [] }
  const command = processExecutor().run('true', { ...common, ...limits })
  await assert.rejects(command, { code: 'ERR_AGENT_EXHAUSTED', message: /ulimit -n/ })
  release()
  OutputPipe.open = open
}

/** Checks a goal: its command runs, and then nothing is left to read the files that it protects. */
async function checkWithoutAny(root: string): Promise<void> {
  const checked = join(root, 'checked')
  mkdirSync(checked)
  writeFileSync(join(checked, 'a.txt'), 'a')
  const spec: GoalSpec = {
    name: 'shell',
    goal: 'shell: true',
    command: 'true',
    env: {},
    timeout_ms: 60_000,
    success_exit_code: 0,
    reporter: null,
    protected: ['*.txt'],
    allow_test_changes: false,
    instructions: '',
  }
  const baseline = await captureBaseline(spec, checked)
  let commands = 0
  const real = processExecutor()
  const executor: Executor = {
    name: 'exhausting',
    run: async (text, options) => {
      commands += 1
      const result = await real.run(text, options)
      exhaust(0)
      void releaseOnWait()
      return result
    },
    killMarked: (mark) => real.killMarked(mark),
  }
  const check = { executor, cwd: checked, baseline, baselineTests: null }
  const { achieved, reason } = await checkGoal(spec, { ...common, ...check })
  assert.deepEqual([achieved, reason, commands], [true, 'exit code 0', 1])
}

/**
 * Drives runs while no file descriptor is left, or few. Says a line for each run: how many were
 * left, how the run ended, how often it waited, whether the health check failed meanwhile.
 */
export async function exhaustDescriptors(
  { root }: { readonly root: string },
  life: Life,
): Promise<void> {
  await runWithoutAny(root)
  await checkWithoutAny(root)
  let left = 0
  let failedChecks = 0
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [root],
    defaultModel: 'test:m',
    maxTurnsPerIteration: TURNS.length,
    clock,
    providers: [
      testProvider(({ run }) => {
        release()
        exhaust(left)
        return { calls: TURNS[run.turn] ?? [] }
      }),
    ],
  })
  const stopped = new AbortController()
  const watching = (async () => {
    while (!stopped.signal.aborted) {
      await engine.check().catch((error: unknown) => {
        assert.equal((error as { code?: unknown }).code, 'ERR_AGENT_EXHAUSTED')
        failedChecks += 1
        release()
      })
      await nextTurn()
    }
  })()
  for (left of [0, 3]) {
    const cwd = join(root, String(left))
    mkdirSync(cwd)
    writeFileSync(join(cwd, 'a.txt'), 'a needle')
    failedChecks = 0
    const goal = 'shell: grep -q two b.txt'
    const { events, details } = await runToEnd(engine, { goal, cwd, max_iterations: 3 })
    release()
    assertInvariants(events)
    const codes = events.flatMap((event) =>
      event.kind === 'tool_result' ? [event.payload.exit_code] : [],
    )
    assert.deepEqual(codes, [0, 0, 0, 0, 0, 0], JSON.stringify(events, null, 1))
    assert.equal(readFileSync(join(cwd, 'ran'), 'utf8'), 'ran\n')
    const waits = events.filter((event) => event.kind === 'log' && event.payload.level === 'warn')
    assert.equal(await engine.check(), undefined)
    life.say([left, details.status, waits.length, failedChecks > 0].join(' '))
  }
  stopped.abort()
  await watching
  await engine.close()
}
