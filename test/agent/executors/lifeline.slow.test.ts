import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import { processExecutor } from 'runwright/agent'
import { processGroup, waitUntilGone } from '../../../lib/agent/executors/process-tree.js'
import { Children } from '../../helpers/kill.js'
import { Bench } from './executor-contract.js'

const children = new Children<typeof import('./lifeline-children.js')>(
  new URL('lifeline-children.ts', import.meta.url),
)

/** Each command of `lifeline-children.ts` has four processes, which write a line each. */
const PROCESSES = 4

/** A pipe that the processes of commands write to once they run, and hold open. */
class Held {
  readonly #lines: AsyncIterator<string>
  readonly #ended: Promise<unknown>

  constructor(t: TestContext, bench: Bench, name: string) {
    execFileSync('mkfifo', [bench.path(name)])
    const pipe = createReadStream(bench.path(name))
    this.#ended = once(pipe, 'end')
    this.#lines = createInterface({ input: pipe })[Symbol.asyncIterator]()
    t.after(async () => await bench.executor.killMarked(`${bench.folder}-${name}`))
  }

  async commands(count: number): Promise<void> {
    for (let i = 0; i < count * PROCESSES; i++) assert.equal((await this.#lines.next()).done, false)
  }

  /** Resolves once no process holds the pipe. */
  async released(): Promise<void> {
    await this.#ended
  }
}

const noProc = existsSync('/proc/self/stat') ? false : 'this system has no /proc'

// Without the kills it would wait for ever.
const limits = { skip: noProc, timeout: 60_000 }

test('commands and tool servers end with thread and process', limits, async (t) => {
  const bench = new Bench(t, processExecutor())
  const [main, worker] = [new Held(t, bench, 'main'), new Held(t, bench, 'worker')]
  const { folder } = bench
  const [, ...thread] = children.command('holdInThread', { folder })
  const service = children.start(t, 'holdCommands', { folder, thread })
  const sandboxed = (await service.line()) === 'true'
  await main.commands(sandboxed ? 3 : 2)
  await worker.commands(1)

  service.send('end the thread')
  await worker.released()
  assert.ok(service.isAlive)

  service.send('kill the keeper')
  await service.line()
  service.kill()
  const { stderr } = await service.ended
  await main.released()

  const warned = stderr.match(/RUNWRIGHT_SANDBOX_ROOT/g)?.length ?? 0
  assert.equal(warned, sandboxed && process.geteuid?.() === 0 ? 1 : 0)
})

test('process: a command held in onStart never runs if this process dies', async (t) => {
  const bench = new Bench(t, processExecutor())
  const holder = children.start(t, 'holdOnStart', { folder: bench.folder })
  const group = processGroup(Number(await holder.line()))
  assert.equal((await group.members()).length, 1)
  holder.kill()
  await holder.ended
  assert.ok(await waitUntilGone([group], 20_000))
  assert.ok(!existsSync(bench.path('ran')))
})
