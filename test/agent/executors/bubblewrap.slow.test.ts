import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  autoExecutor,
  bubblewrapExecutor,
  bubblewrapProblem,
  type BubblewrapOptions,
} from 'runwright/agent'
import { markedProcesses, waitUntilGone } from '../../../lib/agent/executors/process-tree.js'
import { Bench, testExecutor } from './executor-contract.js'

const skip = (await bubblewrapProblem()) ?? false

testExecutor('bubblewrap', () => bubblewrapExecutor(), skip)

function sandboxed(behaviour: string, body: (t: TestContext) => Promise<void>): void {
  test(`bubblewrap: ${behaviour}`, { skip }, body)
}

function bench(t: TestContext, options: BubblewrapOptions = {}): Bench {
  return new Bench(t, bubblewrapExecutor(options))
}

/** A folder beside the workspace, with a secret in it. */
function outside(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'outside-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'secret'), 'top secret')
  return folder
}

sandboxed("the parent's keys cannot be stolen through /proc", async (t) => {
  process.env['ANTHROPIC_API_KEY'] = 'sk-in-the-parent'
  t.after(() => delete process.env['ANTHROPIC_API_KEY'])
  const { output, exitCode } = await bench(t).run(
    `cat /proc/*/environ /proc/${process.pid}/environ /proc/$PPID/environ 2>/dev/null |
       tr '\\0' '\\n'
     echo "processes: $(ls -d /proc/[0-9]* | wc -l)"
     kill -0 ${process.pid} 2>/dev/null && echo "reached the parent"
     exit 0`,
  )
  assert.equal(exitCode, 0)
  assert.ok(output.includes('RUNWRIGHT_RUN='), 'a command can read its own environment')
  assert.ok(!output.includes('sk-in-the-parent'))
  assert.ok(!output.includes('reached the parent'))
  assert.ok(Number(/processes: (\d+)/.exec(output)?.[1]) < 10, output)
})

sandboxed('nothing is written outside the workspace', async (t) => {
  const folder = outside(t)
  const here = bench(t)
  symlinkSync(folder, here.path('link'))
  const targets = [
    folder,
    here.path('link'),
    `${here.folder}/..`,
    '/usr',
    '/etc',
    '/',
    homedir(),
    '/var/lib',
  ]
  const { output } = await here.run(
    `for folder in ${targets.map((target) => `'${target}'`).join(' ')}; do
       (echo x > "$folder/escaped-from-sandbox") 2>/dev/null
     done; echo mine > mine; cat /etc/passwd | head -c 4`,
  )
  assert.equal(output, 'root')
  assert.equal(readFileSync(here.path('mine'), 'utf8'), 'mine\n')
  const escaped = [...targets, tmpdir()].filter((target) =>
    existsSync(join(target, 'escaped-from-sandbox')),
  )
  assert.deepEqual(escaped, [])
})

sandboxed('files outside the workspace cannot be read, by path or by link', async (t) => {
  const folder = outside(t)
  const here = bench(t)
  symlinkSync(join(folder, 'secret'), here.path('link'))
  const { output } = await here.run(
    `cat link '${folder}/secret' /etc/shadow 2>/dev/null
     ls -A '${homedir()}' | grep -v pyenv; ls -A /tmp`,
  )
  assert.ok(!output.includes('top secret'))
  assert.ok(!/^root:/m.test(output), output)
  assert.ok(!output.includes('.ssh'))
  assert.ok(!output.includes('outside-'))
})

sandboxed('setsid, nohup and double forks do not outlive the command', async (t) => {
  const here = bench(t)
  const { exitCode } = await here.run(
    `env -i setsid sh -c 'exec 9<> hold; trap "" TERM HUP; sleep 600; true' > /dev/null 2>&1 &
     (nohup sleep 600 > /dev/null 2>&1 &)
     exit 0`,
  )
  assert.equal(exitCode, 0)
  assert.ok(await waitUntilGone([markedProcesses('RUNWRIGHT_RUN', here.mark)], 20_000))
})

sandboxed('an abort also ends a process that left the group and dropped its mark', async (t) => {
  const here = bench(t)
  const running = here.run(
    `env -i PATH="$PATH" setsid sh -c '
       trap "" TERM; echo > begun; echo $$ > pid; sleep 600; echo > survived' & wait`,
  )
  await here.begun()
  here.abort()
  assert.equal((await running).exitCode, 130)
  // The sandbox's whole process namespace is gone: a second sandbox sees none of its processes.
  const { output } = await bubblewrapExecutor().run('ls -d /proc/[0-9]* | wc -l', {
    cwd: here.folder, env: {}, timeoutMs: 60_000, maxOutputBytes: 1_000, mark: here.mark,
    writable: [], signal: new AbortController().signal,
  })
  assert.ok(Number(output) < 10)
  assert.ok(!existsSync(here.path('survived')))
})

async function port(t: TestContext): Promise<number> {
  const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}

for (const network of [false, true]) {
  sandboxed(
    `with network: ${network} a command ${network ? 'reaches' : 'cannot reach'} local services`,
    async (t) => {
      const script = `require('node:net').connect(${await port(t)}, '127.0.0.1')
        .on('data', (data) => console.log(String(data)))
        .on('error', (error) => console.log(error.code))`
      const { output } = await bench(t, { network }).run(`node -e "$SCRIPT"`, {
        env: { SCRIPT: script },
      })
      assert.equal(output, network ? 'reached\n' : 'ECONNREFUSED\n')
    },
  )
}

sandboxed('commands run where a closed folder lies in another one', async (t) => {
  const data = outside(t)
  mkdirSync(join(data, 'workspaces'))
  const closed = [data, join(data, 'workspaces')]
  const { output, exitCode } = await bench(t, { closed, readOnly: [data] }).run(
    `ls -A '${data}' && echo nothing else`,
  )
  assert.deepEqual({ output, exitCode }, { output: 'nothing else\n', exitCode: 0 })
})

sandboxed('options make folders readable or writable; closed folders stay hidden', async (t) => {
  const [readable, writable, here] = [outside(t), outside(t), bench(t)]
  const data = here.path('data')
  mkdirSync(data)
  writeFileSync(join(data, 'journal'), 'top secret')
  const executor = bubblewrapExecutor({
    readOnly: [readable],
    closed: [data, join(tmpdir(), 'no-such-folder')],
  })
  const { output } = await executor.run(
    `cat '${readable}/secret'; echo; (echo x > '${readable}/new') 2>/dev/null || echo refused
     echo x > '${writable}/new'; ls -A data; (echo x > data/new) 2>/dev/null || echo closed`,
    {
      cwd: here.folder, env: {}, timeoutMs: 60_000, maxOutputBytes: 1_000, mark: here.mark,
      writable: [writable], signal: new AbortController().signal,
    },
  )
  assert.equal(output, 'top secret\nrefused\nclosed\n')
  assert.ok(existsSync(join(writable, 'new')))
  assert.ok(!existsSync(join(data, 'new')))
})

sandboxed('node and npm work in the sandbox', async (t) => {
  const { output, exitCode } = await bench(t).run('node -p 1+1 && npm --version')
  assert.equal(exitCode, 0, output)
  assert.match(output, /^2\n\d+\.\d+/)
})

test('auto: the executor is bubblewrap where that works, else plain processes', async () => {
  const { name } = await autoExecutor()
  assert.equal(name, skip === false ? 'bubblewrap' : 'process')
})

test('auto: without bwrap on PATH it is plain processes, and the problem is named', async (t) => {
  const path = process.env['PATH']
  process.env['PATH'] = mkdtempSync(join(tmpdir(), 'no-programs-'))
  t.after(() => {
    rmSync(process.env['PATH'] ?? '', { recursive: true })
    process.env['PATH'] = path
  })
  assert.equal((await autoExecutor()).name, 'process')
  assert.match(
    (await bubblewrapProblem()) ?? '',
    /does not work here: .*(bwrap is not installed|no pipe for its output)/,
  )
})

sandboxed('programs planted in a PATH folder of the workspace stay in the sandbox', async (t) => {
  const here = bench(t)
  const [path, programs] = [process.env['PATH'], here.path('node_modules/.bin')]
  process.env['PATH'] = `${programs}:${path}`
  t.after(() => {
    process.env['PATH'] = path
  })
  mkdirSync(programs, { recursive: true })
  for (const name of ['bwrap', 'mkfifo']) {
    const planted = `#!/bin/sh\necho "$PPID" >> '${here.path('ran')}'\nexec /usr/bin/${name} "$@"\n`
    writeFileSync(join(programs, name), planted, { mode: 0o755 })
  }
  assert.equal((await here.run('echo fine')).output, 'fine\n')
  assert.ok(!existsSync(here.path('ran')))
})

sandboxed('variables of the dynamic loader reach commands, but not bwrap itself', async (t) => {
  const libraries = { LD_LIBRARY_PATH: 'build', LD_PRELOAD: '', GLIBC_TUNABLES: '' }
  const { output } = await bench(t).run(
    `echo "$LD_LIBRARY_PATH"; tr '\\0' '\\n' < /proc/1/environ | grep -E '^(LD_|GL|RUNWRIGHT_R)'`,
    { env: libraries, mark: 'seen' },
  )
  assert.equal(output, 'build\nRUNWRIGHT_RUN=seen\n')
})

sandboxed('a command whose sandbox cannot be created was not started', async (t) => {
  const here = bench(t)
  const { exitCode, output } = await here.run('true', { writable: ['/nonexistent/folder'] })
  assert.equal(exitCode, 127)
  assert.match(output, /^the command was not started: bwrap: .*nonexistent/)
})
