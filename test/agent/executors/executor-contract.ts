import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { CommandOptions, CommandResult, Executor } from 'runwright/agent'
import { collectGarbage } from '../../helpers/garbage.js'
import { HeldTimers } from '../../helpers/held-timers.js'

/** A working folder, in which the executor under test runs commands. */
export class Bench {
  readonly executor: Executor
  readonly folder: string
  readonly mark: string
  readonly #controller = new AbortController()

  constructor(t: TestContext, executor: Executor) {
    this.executor = executor
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'executor-')))
    this.mark = this.folder
    execFileSync('mkfifo', [this.path('begun')])
    t.after(async () => {
      await executor.killMarked(this.mark)
      rmSync(this.folder, { recursive: true, force: true })
    })
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  async run(command: string, options: Partial<CommandOptions> = {}): Promise<CommandResult> {
    return await this.executor.run(command, {
      cwd: this.folder,
      env: {},
      timeoutMs: 60_000,
      maxOutputBytes: 65_536,
      mark: this.mark,
      writable: [],
      signal: this.#controller.signal,
      ...options,
    })
  }

  /** Resolves once the command has written to the pipe `begun`, with what it wrote. */
  async begun(): Promise<string> {
    return await readFile(this.path('begun'), 'utf8')
  }

  abort(): void {
    this.#controller.abort()
  }
}

/** The behaviour that all executors share. */
export function testExecutor(name: string, make: () => Executor, skip: string | false): void {
  const check = (
    behaviour: string,
    body: (bench: Bench, t: TestContext) => Promise<void>,
  ): void => {
    test(`${name}: ${behaviour}`, { skip }, async (t) => await body(new Bench(t, make()), t))
  }

  for (const { command, code } of [
    { command: 'true', code: 0 },
    { command: 'exit 7', code: 7 },
    { command: 'no-such-command-here', code: 127 },
    { command: 'kill -9 $$', code: 137 },
    { command: 'sh -c "kill -TERM \\$\\$"', code: 143 },
    { command: '(', code: 2 },
  ]) {
    check(`\`${command}\` has exit code ${code}`, async (bench) => {
      const result = await bench.run(command)
      assert.equal(result.exitCode, code, result.output)
      assert.equal(result.timedOut, false)
    })
  }

  check('standard output and error keep their order, and can be opened by name', async (bench) => {
    const { output } = await bench.run('echo 1; echo 2 >&2; echo 3; echo 4 > /dev/stderr; echo 5')
    assert.equal(output, '1\n2\n3\n4\n5\n')
  })

  check('of many short commands at a time, each has its own end', async (bench) => {
    for (let round = 0; round < 15; round++) {
      const ids = Array.from({ length: 16 }, (_, i) => `${round}.${i}`)
      const results = await Promise.all(ids.map((id) => bench.run(`echo ${id}; exit 3`)))
      const told = results.map(({ exitCode, output }) => `${exitCode} ${output}`)
      assert.deepEqual(told, ids.map((id) => `3 ${id}\n`))
    }
  })

  check('a command runs in its folder, with empty standard input', async (bench) => {
    const { output } = await bench.run('pwd; cat; echo end')
    assert.equal(output, `${bench.folder}\nend\n`)
  })

  check('bytes that are not UTF-8 are replaced', async (bench) => {
    assert.equal((await bench.run("printf 'a\\377b'")).output, 'a\ufffdb')
  })

  check('API keys of this process do not reach the command', async (bench, t) => {
    process.env['OPENAI_API_KEY'] = 'sk-planted'
    process.env['FORCE_COLOR'] = '1'
    t.after(() => {
      delete process.env['OPENAI_API_KEY']
      delete process.env['FORCE_COLOR']
    })
    const { output } = await bench.run('env', { env: { ADDED: 'yes' } })
    assert.ok(!output.includes('sk-planted'))
    assert.ok(!/^(npm_|NODE_|FORCE_COLOR)(?!EXTRA_CA)/m.test(output), output)
    const lines = output.split('\n')
    for (const line of [
      'ADDED=yes',
      'CI=true',
      'TERM=dumb',
      'PYTHONDONTWRITEBYTECODE=1',
      `RUNWRIGHT_RUN=${bench.mark}`,
    ]) {
      assert.ok(lines.includes(line), `${line} in ${output}`)
    }
  })

  check('a program in the working directory is not found by a relative PATH', async (bench, t) => {
    const path = process.env['PATH']
    process.env['PATH'] = `.::node_modules/.bin:${path}`
    t.after(() => {
      process.env['PATH'] = path
    })
    await bench.run(
      'mkdir -p node_modules/.bin; for f in uname node_modules/.bin/uname; do ' +
        'printf "#!/bin/sh\\necho planted\\n" > $f; chmod +x $f; done',
    )
    assert.notEqual((await bench.run('uname')).output, 'planted\n')
  })

  check('of 100 MB of output only head and tail are kept in memory', async (bench) => {
    const used = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed
    await collectGarbage()
    const before = used()
    let grown = 0
    let over = false
    const running = bench
      .run("echo head; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo tail", {
        maxOutputBytes: 1_000,
        // Collecting garbage all the while takes long on a busy machine.
        timeoutMs: 150_000,
      })
      .finally(() => (over = true))
    while (!over) {
      await collectGarbage()
      grown = Math.max(grown, used() - before)
    }
    const { output, truncated } = await running
    assert.ok(truncated)
    assert.match(output, /^head\nx+\n\[… \d+ bytes left out …\]\nx+\ntail\n$/)
    assert.ok(Buffer.byteLength(output) < 1_100)
    assert.ok(grown < 20_000_000, `grew by ${grown} bytes`)
  })

  check('a command that takes too long is ended, and its output so far is kept', async (bench) => {
    using limits = new HeldTimers(54_321)
    const running = bench.run('echo begun; echo > begun; sleep 600 & sleep 600', {
      timeoutMs: 54_321,
    })
    await bench.begun()
    limits.fire()
    const result = await running
    assert.deepEqual(
      { exitCode: result.exitCode, timedOut: result.timedOut, output: result.output },
      { exitCode: 124, timedOut: true, output: 'begun\n' },
    )
    assert.equal(await bench.executor.killMarked(bench.mark), 0)
  })

  check('an abort ends the whole process group', async (bench) => {
    const running = bench.run('sleep 600 & (sleep 600; true) & echo > begun; wait')
    await bench.begun()
    bench.abort()
    const { exitCode, timedOut } = await running
    assert.deepEqual({ exitCode, timedOut }, { exitCode: 130, timedOut: false })
    assert.equal(await bench.executor.killMarked(bench.mark), 0)
  })

  check('an aborted command may clean up', async (bench) => {
    const running = bench.run(
      "trap 'echo bye > note; exit 0' TERM; echo > begun; while :; do sleep 0.02; done",
    )
    await bench.begun()
    bench.abort()
    assert.equal((await running).exitCode, 130)
    assert.equal(readFileSync(bench.path('note'), 'utf8'), 'bye\n')
  })

  check('a command that ignores SIGTERM is killed', async (bench) => {
    const running = bench.run('trap "" TERM; echo > begun; while :; do sleep 1; done')
    await bench.begun()
    bench.abort()
    const { exitCode, durationMs } = await running
    assert.equal(exitCode, 130)
    assert.ok(durationMs >= 1_900, `${durationMs} ms`)
    assert.equal(await bench.executor.killMarked(bench.mark), 0)
  })

  check('a process that left the group with setsid is ended as well', async (bench) => {
    const running = bench.run("setsid sh -c 'echo > begun; sleep 600; true' & wait")
    await bench.begun()
    bench.abort()
    assert.equal((await running).exitCode, 130)
    assert.equal(await bench.executor.killMarked(bench.mark), 0)
  })

  check('the result does not wait for a grandchild that holds the output', async (bench) => {
    const { exitCode, output } = await bench.run('sleep 600 & setsid sleep 600 & echo done')
    assert.deepEqual({ exitCode, output }, { exitCode: 0, output: 'done\n' })
  })

  check('the command waits for onStart', async (bench) => {
    const seen: string[] = []
    const result = await bench.run('echo > ran; echo ran', {
      onStart: async (pgid) => {
        process.kill(-pgid, 0)
        seen.push(existsSync(bench.path('ran')) ? 'too late' : 'in time')
      },
    })
    assert.deepEqual([seen, result.output], [['in time'], 'ran\n'])
  })

  check('a command whose onStart rejects never runs', async (bench) => {
    const result = await bench.run('echo > ran', {
      onStart: async () => {
        throw new Error('the log is full')
      },
    })
    assert.equal(result.exitCode, 127)
    assert.equal(result.output, 'the command was not started: the log is full')
    assert.ok(!existsSync(bench.path('ran')))
    assert.equal(await bench.executor.killMarked(bench.mark), 0)
  })

  check('a command that is aborted before its start never runs', async (bench) => {
    const result = await bench.run('echo > ran', {
      onStart: async () => {
        bench.abort()
        await new Promise(() => undefined)
      },
    })
    assert.equal(result.exitCode, 130)
    let started = false
    const later = await bench.run('echo > ran', { onStart: async () => void (started = true) })
    assert.deepEqual([later.exitCode, started], [130, false])
    assert.ok(!existsSync(bench.path('ran')))
  })

  for (const [cause, command, options, problem] of [
    ['a missing folder', 'true', { cwd: '/nonexistent/folder' }, 'does not exist'],
    ['a NUL character', 'true\0', {}, 'without null bytes'],
    ['a NUL character in a variable', 'true', { env: { A: 'a secret\0' } }, 'without null bytes'],
    ['a line that is too long', `echo ${'x'.repeat(200_000)}`, {}, 'put it in a file'],
  ] as const) {
    check(`${cause} is a result, not an exception`, async (bench) => {
      const { exitCode, output } = await bench.run(command, options)
      assert.equal(exitCode, 127)
      assert.match(output, /^the command was not started: /)
      assert.ok(output.includes(problem) && !output.includes('secret'), output)
    })
  }

  check('no files, descriptors or listeners are left behind', async (bench, t) => {
    const { signal } = new AbortController()
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = bench.folder
    t.after(() => {
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
    })
    const descriptors = (): number =>
      existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0
    await bench.run('true', { signal })
    const open = descriptors()
    for (let i = 0; i < 5; i++) await bench.run('true', { signal })
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    assert.ok(descriptors() <= open + 2, `${open} descriptors, then ${descriptors()}`)
    assert.deepEqual(readdirSync(bench.folder), ['begun'])
  })

  check('killMarked ends only processes with exactly that mark', async (bench) => {
    const other = `${bench.mark}-more`
    const running = bench.run('echo > begun; exec sleep 600', { mark: other })
    await bench.begun()
    assert.equal(await bench.executor.killMarked(bench.mark), 0)
    assert.equal(await bench.executor.killMarked(''), 0)
    assert.ok((await bench.executor.killMarked(other)) >= 1)
    assert.equal((await running).exitCode, 137)
  })
}
