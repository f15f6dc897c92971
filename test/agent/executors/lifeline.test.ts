import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import { processExecutor } from 'runwright/agent'
import { programAt } from '../../helpers/programs.js'
import { Bench } from './executor-contract.js'

/** Each command of `lifeline-child.ts` has four processes, which write a line each. */
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
  const args = [...programAt('test/agent/executors/lifeline-child.ts'), bench.folder]
  const service = spawn(process.execPath, args)
  t.after(() => service.kill('SIGKILL'))
  const warnings = service.stderr.setEncoding('utf8').toArray()
  const exited = once(service, 'exit')
  const lines = createInterface({ input: service.stdout })[Symbol.asyncIterator]()
  const sandboxed = (await lines.next()).value === 'true'
  await main.commands(sandboxed ? 3 : 2)
  await worker.commands(1)

  service.stdin.write('end the thread\n')
  await worker.released()
  assert.equal(service.exitCode, null)

  service.stdin.write('kill the keeper\n')
  await lines.next()
  service.kill('SIGKILL')
  await exited
  await main.released()

  const warned = (await warnings).join('').match(/RUNWRIGHT_SANDBOX_ROOT/g)?.length ?? 0
  assert.equal(warned, sandboxed && process.geteuid?.() === 0 ? 1 : 0)
})
