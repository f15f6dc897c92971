import assert from 'node:assert/strict'
import { spawn, type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bubblewrapProblem } from 'runwright/agent'
import { AsyncClient } from 'runwright/http'
import { programAt } from './helpers/programs.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const examples = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts'))

/** Examples that run until they are stopped, with the line that contains the port. */
const servers: Readonly<Record<string, RegExp>> = {
  'ws-echo.ts': /^ws:\/\/127\.0\.0\.1:(\d+)\/\n/,
}
/** Examples with their own test. */
const elsewhere: Readonly<Record<string, string>> = {
  'demo.ts': 'test/examples.test.ts',
  'standalone-server.ts': 'test/standalone.slow.test.ts',
  'cluster.ts': 'test/peers/postgres/cluster.test.ts',
}

/** The home and temporary folder of all processes started here. */
let folder = ''
/** Why examples cannot be isolated from the network on this machine, or null. */
let sandboxProblem: string | null = null

before(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-examples-')))
  mkdirSync(join(folder, 'tmp'))
  sandboxProblem = await bubblewrapProblem()
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Starts an example with a clean environment; without `network` it has its own loopback. */
function start(
  t: TestContext,
  example: string,
  {
    network,
    env = {},
    node = programAt(`examples/${example}`),
  }: {
    network: boolean
    env?: Readonly<Record<string, string>>
    node?: readonly string[]
  },
): ChildProcess {
  const sandbox = ['bwrap', '--dev-bind', '/', '/', '--unshare-net', '--die-with-parent', '--']
  const isolated = !network && sandboxProblem === null
  if (!network && sandboxProblem !== null) t.diagnostic(`with the network: ${sandboxProblem}`)
  const command = [...(isolated ? sandbox : []), process.execPath, ...node]
  const { PATH = '' } = process.env
  const child = spawn(command[0]!, command.slice(1), {
    cwd: root,
    env: { PATH, HOME: folder, TMPDIR: join(folder, 'tmp'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

/** Collects the output of a process; `seen` is called with all of stdout so far. */
async function end(child: ChildProcess, seen: (stdout: string) => void = () => {}): Promise<Ended> {
  let [stdout, stderr] = ['', '']
  child.stdout!.setEncoding('utf8').on('data', (text: string) => seen((stdout += text)))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { code, signal, stdout, stderr }
}

/** Output for people: some words, and no stack traces or unformatted values. */
function assertSensible({ stdout }: Ended): void {
  assert.match(stdout, /\w{2,}.*\n$/s)
  assert.doesNotMatch(stdout, /\[object \w+\]|\bundefined\b|\bNaN\b|\n {4}at /)
}

for (const example of examples.filter((name) => !(name in servers) && !(name in elsewhere))) {
  test(`examples/${example} prints its results, ends, and needs no network`, async (t) => {
    const ended = await end(start(t, example, { network: false }))
    assert.equal(ended.code, 0, ended.stderr)
    assert.equal(ended.stderr, '')
    assertSensible(ended)
  })
}

for (const [example, address] of Object.entries(servers)) {
  test(`examples/${example} prints its address, serves there, and ends on SIGTERM`, async (t) => {
    const child = start(t, example, { network: true, env: { PORT: '0' } })
    let served: Promise<void> | undefined
    const ended = await end(child, (stdout) => {
      const port = address.exec(stdout)?.[1]
      if (port === undefined) return
      served ??= request(Number(port)).finally(() => child.kill('SIGTERM'))
      served.catch(() => {})
    })
    assert.ok(served !== undefined, `no address in the output: ${ended.stdout}${ended.stderr}`)
    await served
    assert.equal(ended.code, 0, `${ended.signal} ${ended.stderr}`)
    assert.equal(ended.stderr, '')
  })
}

/** Resolves once the server has sent a response, with any status. */
async function request(port: number): Promise<void> {
  await using client = new AsyncClient({ baseUrl: `http://127.0.0.1:${port}`, trustEnv: false })
  await client.get('/', { timeout: 60_000 })
}

test('the demo achieves its goal without network or language model, even with a key', async (t) => {
  const env = { OPENAI_API_KEY: 'sk-not-a-key-0123456789', RUNWRIGHT_MODEL: 'openai:gpt-5' }
  const node = ['build/run.mjs', 'examples/demo.ts'] // as npm run demo does
  const ended = await end(start(t, 'demo.ts', { network: false, env, node }))
  assert.equal(ended.code, 0, `${ended.stdout}${ended.stderr}`)
  assertSensible(ended)
  assert.match(ended.stdout, /model builtin:repair \(no language model\)/)
  assert.match(ended.stdout, /^iteration 1$/m)
  assert.match(ended.stdout, /^achieved after \d+ iterations?: .*11/m)
  const changed = [...ended.stdout.matchAll(/^--- a\/(.*)\n\+\+\+ b\/\1$/gm)].map(
    ([, path]) => path,
  )
  assert.deepEqual(changed, ['src/catalogue.js', 'src/fees.js', 'src/loans.js'])
  const [, cwd] = /^To see for yourself: cd (.*) && node --test$/m.exec(ended.stdout) ?? []
  const { NODE_TEST_CONTEXT: _, ...own } = process.env
  const check = spawnSync(process.execPath, ['--test'], { cwd: cwd!, env: own, encoding: 'utf8' })
  assert.equal(check.status, 0, check.stdout)
  assert.ok(!ended.stdout.includes(env.OPENAI_API_KEY))
})

test('no example names a remote host', () => {
  for (const example of examples) {
    const source = readFileSync(join(root, 'examples', example), 'utf8')
    // Names below .test never resolve (RFC 6761, section 6.2).
    const near = /^(127\.0\.0\.1|localhost|\[::1\]|[\w.-]+\.test|\$\{.*)$/
    const urls = [...source.matchAll(/\b(?:https?|wss?):\/\/(\[[^\]]*\]|[^/\s'"`:]+)/g)]
    assert.deepEqual(urls.map((match) => match[1]!).filter((host) => !near.test(host)), [], example)
  }
})

test('the lists of special examples only name existing ones', () => {
  for (const name of [...Object.keys(servers), ...Object.keys(elsewhere)]) {
    assert.ok(examples.includes(name), `examples/${name} does not exist`)
  }
  assert.ok(examples.length > Object.keys(servers).length + Object.keys(elsewhere).length)
})
