import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AsyncClient, SseParser } from 'runwright/http'
import type { AgentEvent, RunDetails } from 'runwright/agent'
import { assertInvariants } from './helpers/invariants.js'
import { plantBugs } from './helpers/plant-bugs.js'
import { programAt } from './helpers/programs.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = programAt('examples/standalone-server.ts')

interface Started {
  readonly child: ChildProcess
  readonly baseUrl: string
  readonly lines: readonly string[]
  /** What it has printed so far, in pieces. */
  readonly stdout: readonly string[]
  readonly stderr: readonly string[]
}

function scratch(t: TestContext): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-standalone-')))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The command of `npm start`. */
const script: string = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.start
const npmStart = script.replace(/^node /, '').split(' ')

function launch(
  t: TestContext,
  env: Record<string, string>,
  words: readonly string[] = [],
  node = compiled,
): ChildProcess {
  const args = [...node, ...words]
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { PATH, HOME, ...env },
    stdio: 'pipe',
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

/** Starts the server; resolves once it has printed its address. */
async function start(
  t: TestContext,
  env: Record<string, string>,
  node = compiled,
): Promise<Started> {
  const child = launch(t, { PORT: '0', ...env }, [], node)
  const stdout: string[] = []
  const stderr: string[] = []
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(String(chunk)))
  await new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout.push(String(chunk))
      if (/^watch it: .*\n/m.test(stdout.join(''))) resolve()
    })
  })
  const printed = stdout.join('')
  const baseUrl = /^runwright listening on (http:\S+)\n/.exec(printed)?.[1]
  assert.ok(baseUrl !== undefined, `it prints its address: ${printed}${stderr.join('')}`)
  return { child, baseUrl, lines: printed.trim().split('\n'), stdout, stderr }
}

async function failsToStart(
  t: TestContext,
  env: Record<string, string>,
  words: readonly string[] = [],
): Promise<string> {
  const child = launch(t, { PORT: '0', ...env }, words)
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += String(chunk)))
  child.stdout?.once('data', () => child.kill('SIGKILL'))
  const [code] = (await once(child, 'close')) as [number | null]
  assert.equal(code, 1, 'it starts')
  return stderr
}

test('a run survives three kill -9, and no event is lost or duplicated', async (t) => {
  const folder = scratch(t)
  const project = plantBugs(join(folder, 'project'))
  const env = { RUNWRIGHT_DATA: join(folder, 'data'), RUNWRIGHT_ROOTS: project }
  const seen: AgentEvent[] = []
  let runId = ''
  for (let life = 0; ; life++) {
    const { child, baseUrl } = await start(t, env)
    await using client = new AsyncClient({ baseUrl, timeout: { read: 60_000 } })
    if (life === 0) {
      const created = await client.post('/api/runs', {
        json: { goal: 'node-test', model_name: 'builtin:repair' },
      })
      assert.equal(created.statusCode, 201, created.text)
      runId = created.json<RunDetails>().run_id
    }
    // Kill in the middle of a command, at a file change, and early in an iteration.
    const deadly = ['tool_started', 'tool_result', 'step_start'][life]
    await read(
      client,
      runId,
      seen,
      (event) => event.kind === deadly && event.seq > 8 + life * 5,
      child,
    )
    if (seen.at(-1)?.kind === 'run_end') {
      const details = (await client.get(`/api/runs/${runId}`)).json<RunDetails>()
      assert.equal(details.status, 'achieved')
      const log = (
        await client.get(`/api/runs/${runId}/events`, {
          params: { limit: 1000 },
          headers: { accept: 'application/json' },
        })
      ).json<AgentEvent[]>()
      assert.deepEqual(seen.slice(0, log.length), log, 'the events read are the log')
      assertInvariants(seen)
      assert.equal(seen.filter(({ kind }) => kind === 'run_recovered').length, 3)
      child.kill('SIGTERM')
      const [code] = (await once(child, 'exit')) as [number]
      assert.equal(code, 0, 'it ends cleanly on SIGTERM')
      return
    }
    assert.ok(life < 3, 'the run ends in the fourth process')
  }
})

/** Reads the events after `seen`; kills the server at the first one that `deadly` accepts. */
async function read(
  client: AsyncClient,
  runId: string,
  seen: AgentEvent[],
  deadly: (event: AgentEvent) => boolean,
  child: ChildProcess,
): Promise<void> {
  const headers = { accept: 'text/event-stream', 'last-event-id': String(seen.length) }
  await using response = await client.stream('GET', `/api/runs/${runId}/events`, { headers })
  assert.equal(response.statusCode, 200)
  const parser = new SseParser()
  try {
    for await (const chunk of response.iterBytes()) {
      for (const { data } of parser.feed(chunk)) {
        const event = JSON.parse(data) as AgentEvent
        seen.push(event)
        if (deadly(event)) child.kill('SIGKILL')
      }
    }
  } catch (error) {
    if (child.signalCode === null && !child.killed) throw error
  }
  if (child.killed && child.exitCode === null && child.signalCode === null) {
    await once(child, 'exit')
  }
}

test('damage is printed to standard error, one line each, and shown by the API', async (t) => {
  const folder = scratch(t)
  const data = join(folder, 'data')
  const env = { RUNWRIGHT_DATA: data, RUNWRIGHT_ROOTS: folder }
  const first = await start(t, env)
  await using before = new AsyncClient({ baseUrl: first.baseUrl })
  const created = await before.post('/api/runs', { json: { goal: 'shell: true' } })
  const { run_id } = created.json<RunDetails>()
  await read(before, run_id, [], () => false, first.child)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  const name = readdirSync(join(data, 'runs')).find((file) => /^journal-.*jsonl$/.test(file))!
  const path = join(data, 'runs', name)
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"goal_check"', '"goal_chekc"'))
  const { child, baseUrl, stderr } = await start(t, env)
  while (!stderr.join('').includes(run_id)) await once(child.stderr!, 'data')
  await using client = new AsyncClient({ baseUrl })
  const run = await client.get(`/api/runs/${run_id}`)
  assert.equal(run.statusCode, 500)
  assert.equal(run.json<{ code: string }>().code, 'run_damaged')
  const health = await client.get('/api/health')
  assert.equal(health.json<{ status: string }>().status, 'damaged')
  const [listed] = (await client.get('/api/runs')).json<{ run_id: string; problem: string }[]>()
  assert.equal(listed!.run_id, run_id)
  assert.match(listed!.problem, /damaged/)
  const lines = stderr.join('').trimEnd().split('\n')
  const own = lines.filter((line) => line.startsWith('runwright: ') && line.includes(run_id))
  assert.equal(own.length, 1, stderr.join(''))
  assert.match(own[0]!, /restore the data directory from a backup, or delete the run/)
})

test('Ctrl-C ends it cleanly, and it prints how to start a run', async (t) => {
  const env = { RUNWRIGHT_DATA: scratch(t) }
  const { child, lines, baseUrl, stdout } = await start(t, env, npmStart)
  assert.equal(lines[0], `runwright listening on ${baseUrl}`)
  assert.match(lines[1] ?? '', /curl .*\/api\/runs .*"goal":"node-test","cwd":"[^"]*demo-project"/)
  const said = (): string => stdout.join('')
  while (!said().includes('RUNWRIGHT_API_KEYS=auto')) await once(child.stdout!, 'data')
  assert.match(said(), /gates are not binding\n.*proxy or tunnel .*cannot be told from a local caller/)
  child.kill('SIGINT')
  const [code] = (await once(child, 'exit')) as [number]
  assert.equal(code, 0)
})

test('with keys, calls without one are refused, and the key is not printed', async (t) => {
  const key = 'a-key-of-some-length'
  const { lines, baseUrl } = await start(t, {
    RUNWRIGHT_DATA: scratch(t),
    RUNWRIGHT_API_KEYS: `ann=${key}`,
  })
  assert.ok(!lines.join('\n').includes(key))
  await using client = new AsyncClient({ baseUrl })
  assert.equal((await client.get('/api/runs')).statusCode, 401)
  assert.equal(
    (await client.get('/api/runs', { headers: { authorization: `Bearer ${key}` } })).statusCode,
    200,
  )
})

test('with the key auto it makes one, prints a link with it, and keeps it', async (t) => {
  const data = scratch(t)
  const env = { RUNWRIGHT_DATA: data, RUNWRIGHT_API_KEYS: 'auto', HOME: data }
  const { lines, baseUrl, child, stderr } = await start(t, env)
  const path = join(data, 'runs', 'api-key')
  const key = readFileSync(path, 'utf8').trim()
  assert.match(key, /^[\w-]{43}$/)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.ok(lines.includes(`watch it: ${baseUrl}/#key=${key}`), lines.join('\n'))
  assert.deepEqual(readdirSync(join(data, 'runs')).filter((name) => /key/.test(name)), ['api-key'])
  // The printed command reads the key from the file.
  const [command = ''] = /curl .*$/m.exec(lines.join('\n')) ?? []
  assert.ok(!command.includes(key))
  const said = spawnSync('sh', ['-c', command], { encoding: 'utf8', env: process.env })
  assert.equal((JSON.parse(said.stdout) as { goal: string }).goal, 'node-test', said.stderr)
  await using client = new AsyncClient({ baseUrl })
  assert.equal((await client.get('/api/runs')).statusCode, 401)
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await client.get('/api/runs', { headers })).statusCode, 200)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const again = await start(t, env)
  assert.ok(again.lines.includes(`watch it: ${again.baseUrl}/#key=${key}`))
  assert.ok(!stderr.join('').includes(key))
})

test('two servers that start at once agree on the key', async (t) => {
  const data = scratch(t)
  const env = { RUNWRIGHT_DATA: data, RUNWRIGHT_API_KEYS: 'auto', PORT: '0' }
  const path = join(data, 'runs', 'api-key')
  // The store lets one of them run; the other has read or made the same key before it ends.
  const children = [launch(t, env), launch(t, env), launch(t, env)]
  const printed = children.map((child) => {
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => (text += String(chunk)))
    return () => text
  })
  const ended = children.map(async (child) => {
    let stderr = ''
    child.stderr?.on('data', (chunk: Buffer) => (stderr += String(chunk)))
    await once(child, 'close')
    return stderr
  })
  const first = await Promise.race([
    ...children.map(async (child, index) => {
      for await (const _ of child.stdout!) if (/^watch it/m.test(printed[index]!())) return index
      return await new Promise<number>(() => {})
    }),
    Promise.all(ended).then((said) => assert.fail(`none of them runs: ${said.join('')}`)),
  ])
  const others = children.filter((_, index) => index !== first)
  await Promise.all(others.map((child) => child.exitCode ?? once(child, 'exit')))
  const key = readFileSync(path, 'utf8').trim()
  assert.ok(printed[first]!().includes(`#key=${key}\n`))
  assert.deepEqual(readdirSync(join(data, 'runs')).filter((name) => /key/.test(name)), ['api-key'])
})

test('a key file that others can change or read is refused in one line', async (t) => {
  const refuse = async (problem: string, plant: (path: string) => void): Promise<void> => {
    const data = scratch(t)
    const path = join(data, 'runs', 'api-key')
    mkdirSync(join(data, 'runs'))
    plant(path)
    const said = await failsToStart(t, { RUNWRIGHT_DATA: data, RUNWRIGHT_API_KEYS: 'auto' })
    assert.ok(said.startsWith(`runwright: ${path} ${problem}`), said)
    assert.match(said, /^.*; remove it, and the next start makes a new key\n$/)
  }
  const key = 'k'.repeat(43)
  await refuse('is open to', (path) => writeFileSync(path, key, { mode: 0o640 }))
  await refuse('is a link', (path) => {
    writeFileSync(`${path}-of-others`, key, { mode: 0o600 })
    symlinkSync(`${path}-of-others`, path)
  })
  await refuse('is not a file', (path) => mkdirSync(path, { mode: 0o700 }))
  await refuse('does not contain a key', (path) => writeFileSync(path, '', { mode: 0o600 }))
})

test('on all addresses it prints one that works', async (t) => {
  const { baseUrl, lines } = await start(t, { RUNWRIGHT_DATA: scratch(t), HOST: '0.0.0.0' })
  await using client = new AsyncClient({ baseUrl })
  assert.equal((await client.get('/api/runs')).statusCode, 200, lines[1])
})

test('the default model is builtin:repair even with keys of providers', async (t) => {
  const { baseUrl } = await start(t, {
    RUNWRIGHT_DATA: scratch(t),
    OPENAI_API_KEY: 'sk-test-0123456789',
  })
  await using client = new AsyncClient({ baseUrl })
  const text = (await client.get('/api/models')).text
  const models = JSON.parse(text) as { name: string; default: boolean; provider: string }[]
  assert.deepEqual(
    models.filter((model) => model.default).map(({ name }) => name),
    ['builtin:repair'],
  )
  assert.ok(models.some(({ provider }) => provider === 'openai'))
  assert.ok(!text.includes('sk-test'))
})

for (const [name, env, message] of [
  [
    'a PORT that is not a number',
    { PORT: 'http' },
    /^runwright: PORT must be a number from 0 to 65535, got "http"\n$/,
  ],
  [
    'a root that is a file',
    { RUNWRIGHT_ROOTS: '/etc/passwd' },
    /^runwright: roots: \/etc\/passwd is not a folder\n$/,
  ],
  [
    'a missing root',
    { RUNWRIGHT_ROOTS: '/no/such/folder' },
    /^runwright: roots: \/no\/such\/folder does not exist\n$/,
  ],
  ['a key that is too short', { RUNWRIGHT_API_KEYS: 'short' }, /^runwright: .*16 characters.*\n$/],
  ['an unknown model', { RUNWRIGHT_MODEL: 'nobody:x' }, /^runwright: .*nobody.*\n$/],
] as const) {
  test(`${name} is reported in one line, with a non-zero exit code`, async (t) => {
    assert.match(await failsToStart(t, { RUNWRIGHT_DATA: scratch(t), ...env }), message)
  })
}

test('an unknown argument is reported in one line', async (t) => {
  const stderr = await failsToStart(t, { RUNWRIGHT_DATA: scratch(t) }, ['--port=9000'])
  assert.match(stderr, /^runwright: unknown argument --port=9000; .*--help\n$/)
})

test('--help lists every variable of docs/reference.md and exits', async (t) => {
  const child = launch(t, {}, ['--help'])
  let stdout = ''
  child.stdout?.on('data', (chunk: Buffer) => (stdout += String(chunk)))
  const [code] = (await once(child, 'close')) as [number]
  assert.equal(code, 0)
  const table = readFileSync(join(root, 'docs/reference.md'), 'utf8')
    .split('`npm start`')[1]!
    .split('\nVariables of ')[0]!
  const names = [...table.matchAll(/`([A-Z][A-Z_]+)`/g)].map((match) => match[1]!)
  assert.ok(names.includes('RUNWRIGHT_MODEL'))
  for (const name of names) assert.match(stdout, new RegExp(`^  ${name} `, 'm'))
})

test('a request without cwd works on the copy of the demo project', async (t) => {
  const { baseUrl } = await start(t, { RUNWRIGHT_DATA: scratch(t) })
  await using client = new AsyncClient({ baseUrl })
  const { cwd } = (
    await client.post('/api/runs', { json: { goal: 'shell: true' } })
  ).json<RunDetails>()
  assert.match(cwd, /demo-project$/)
})

test('the copy of the demo project is made anew at each start, in the same folder', async (t) => {
  const data = scratch(t)
  const copy = join(data, 'demo-project')
  const first = await start(t, { RUNWRIGHT_DATA: data })
  // Held open, so that no other folder gets its inode.
  const folder = openSync(copy, 'r')
  t.after(() => closeSync(folder))
  const { ino } = fstatSync(folder)
  const namesIn = (at: string) => readdirSync(at, { recursive: true }).sort()
  const names = namesIn(copy)
  assert.deepEqual(names, namesIn(join(root, 'examples/demo-project')))
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  mkdirSync(join(copy, 'left', 'behind'), { recursive: true })
  await start(t, { RUNWRIGHT_DATA: data })
  assert.deepEqual(namesIn(copy), names)
  // A server that starts at the same time makes sure that the folder exists: it is never away.
  assert.equal(statSync(copy).ino, ino)
})

test('a link in the place of the copy of the demo project is refused in one line', async (t) => {
  const data = scratch(t)
  const elsewhere = scratch(t)
  writeFileSync(join(elsewhere, 'kept'), '')
  symlinkSync(elsewhere, join(data, 'demo-project'))
  const said = await failsToStart(t, { RUNWRIGHT_DATA: data })
  assert.match(said, /^runwright: .*demo-project is a link; remove it, .*\n$/)
  assert.deepEqual(readdirSync(elsewhere), ['kept'])
})

test('a port in use is reported in one line', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.after(() => blocker.close())
  const { port } = blocker.address() as AddressInfo
  const stderr = await failsToStart(t, { RUNWRIGHT_DATA: scratch(t), PORT: String(port) })
  assert.match(
    stderr,
    new RegExp(`^runwright: port ${port} is in use on 127.0.0.1; set PORT.*\\n$`),
  )
})

test('a data folder that cannot be created is reported in one line', async (t) => {
  const data = join(scratch(t), 'file')
  writeFileSync(data, '')
  assert.match(
    await failsToStart(t, { RUNWRIGHT_DATA: data }),
    /^runwright: cannot write to RUNWRIGHT_DATA .*\n$/,
  )
})

test('a data folder that another server uses is reported in one line', async (t) => {
  const data = scratch(t)
  await start(t, { RUNWRIGHT_DATA: data })
  assert.match(await failsToStart(t, { RUNWRIGHT_DATA: data }), /^runwright: .*(lock|use).*\n$/i)
})
