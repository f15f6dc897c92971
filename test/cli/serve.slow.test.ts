import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RunDetails } from 'runwright/agent'
import { AsyncClient } from 'runwright/http'
import { runwright, start, world, type Started, type World } from '../helpers/cli.js'

/** Starts the server on a free port. */
function serve(t: TestContext, at: World, args: readonly string[] = [], env = {}): Started {
  return start(t, at, ['--port', '0', ...args], { env })
}

const LISTENS = /^runwright listening on (http:\S+)\n/
const ALL = /^runs work in (.*); their data is in (.*)\n/m

test('it serves the current folder, says how to start a run, and Ctrl-C ends it', async (t) => {
  const at = world(t)
  const server = serve(t, at)
  const [, url] = await server.until(LISTENS)
  await server.until(/their model is builtin:repair, .*: see --model\n/)
  const [, roots, data] = ALL.exec(server.out)!
  assert.equal(roots, at.project)
  assert.match(data!, new RegExp(`^${at.state}/runwright/project-[\\da-f]{12}$`))
  assert.ok(server.out.includes(`watch it: ${url}/\n`))
  assert.match(server.out, /^--keys is not set:\n(.*\n)*--keys auto makes a key/m)
  await using client = new AsyncClient({ baseUrl: url! })
  assert.equal((await client.get('/api/health')).statusCode, 200)
  assert.match((await client.get('/')).text, /<html/i)
  const json = { goal: 'shell: true' }
  const { cwd } = (await client.post('/api/runs', { json })).json<RunDetails>()
  assert.equal(cwd, at.project)
  server.child.kill('SIGINT')
  assert.equal(await server.end(), 0, server.err)
  assert.match(server.out, /stopping; unfinished runs continue at the next start\n$/)
  assert.equal(server.err, '')
})

test('the curl command that it prints starts a run', async (t) => {
  const at = world(t, { 'package.json': '{"scripts":{"test":"node --test"}}' })
  const server = serve(t, at, [], { RUNWRIGHT_API_KEYS: 'auto' })
  await server.until(/see --model\n/)
  const [, command] = /^start a run: (curl .*)$/m.exec(server.out)!
  const said = start(t, at, [], { command: ['sh', '-c', command!] })
  await said.end()
  assert.equal((JSON.parse(said.out) as RunDetails).goal, 'auto', said.out)
})

test('each folder has data of its own, so that two can be served at once', async (t) => {
  const one = world(t)
  const two = { ...world(t), home: one.home, state: one.state }
  const folders: string[] = []
  for (const at of [one, two]) {
    const server = serve(t, at)
    folders.push((await server.until(ALL))[2]!)
  }
  assert.notEqual(folders[0], folders[1])
})

test('a second server of the same folder is refused, and told of --data', async (t) => {
  const at = world(t)
  const first = serve(t, at)
  await first.until(LISTENS)
  const second = serve(t, at)
  assert.equal(await second.end(), 1)
  assert.match(second.err, /^runwright: .* is in use by process \d+ .*use another directory \(--data\)\n$/)
  const run = start(t, at, ['run', 'shell: true'])
  assert.equal(await run.end(), 1)
  assert.match(run.err, /^runwright: .* is in use by .*; if that is npx runwright .*, or set --data\n$/)
  const third = serve(t, at, ['--data', join(at.home, 'elsewhere')])
  await third.until(LISTENS)
})

test('a port in use is reported in one line, which names --port', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.after(() => blocker.close())
  const { port } = blocker.address() as AddressInfo
  const server = start(t, world(t), ['--port', String(port)])
  assert.equal(await server.end(), 1)
  assert.equal(
    server.err,
    `runwright: port ${port} is in use on 127.0.0.1; set --port to another one (0 picks a free one)\n`,
  )
})

test('/, the home folder and what holds it are refused unless they are named', async (t) => {
  const at = world(t)
  for (const [cwd, args, option] of [
    ['/', ['--port', '0'], '--root'],
    [at.home, ['--port', '0'], '--root'],
    [join(at.home, '..'), ['--port', '0'], '--root'],
    [at.home, ['run', 'shell: true'], '--cwd'],
  ] as const) {
    const refused = start(t, at, args, { cwd })
    assert.equal(await refused.end(), 2)
    const hint = `go to the folder of a project, or name one with ${option}\n$`
    assert.match(refused.err, new RegExp(`^runwright: the current folder is .*; ${hint}`))
  }
  const link = join(at.project, 'link')
  symlinkSync(at.home, link)
  assert.equal(await start(t, at, ['--port', '0'], { cwd: link }).end(), 2)
  const named = start(t, at, ['--port', '0', '--root', at.home, '--root', '/'], { cwd: '/' })
  assert.equal((await named.until(ALL))[1], `${at.home}, /`)
})

test('with --keys auto a key is made, and calls without it are refused', async (t) => {
  const server = serve(t, world(t), ['--keys', 'auto', '--host', '0.0.0.0'])
  const [, url, key] = await server.until(/^watch it: (http:\S+)\/#key=(\S+)$/m)
  await using client = new AsyncClient({ baseUrl: url! })
  assert.equal((await client.get('/api/runs')).statusCode, 401)
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await client.get('/api/runs', { headers })).statusCode, 200)
})

test('keys on the command line work, with a warning, and are not printed', async (t) => {
  const key = 'a-key-of-some-length'
  const server = serve(t, world(t), ['--keys', `ann=${key}`])
  const [, url] = await server.until(LISTENS)
  await server.until(/see --model\n/)
  assert.match(server.err, /^runwright: other programs can read --keys .*RUNWRIGHT_API_KEYS\n$/)
  assert.ok(!`${server.out}${server.err}`.includes(key))
  await using client = new AsyncClient({ baseUrl: url! })
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await client.get('/api/runs')).statusCode, 401)
  assert.equal((await client.get('/api/runs', { headers })).statusCode, 200)
})

test('without keys it says that other machines are refused', async (t) => {
  const server = serve(t, world(t), ['--host', '0.0.0.0'])
  await server.until(/listening on all addresses of this machine\n--keys is not set:/)
})

test('--open gives the address, without the key, to the browser', async (t) => {
  const at = world(t)
  const opened = join(at.home, 'opened')
  execFileSync('mkfifo', [opened])
  const program = join(at.home, process.platform === 'darwin' ? 'open' : 'xdg-open')
  writeFileSync(program, `#!/bin/sh\nprintf %s "$1" > ${opened}\n`, { mode: 0o755 })
  const env = { PATH: `${at.home}:${process.env['PATH']}` }
  const server = serve(t, at, ['--open', '--keys', 'auto'], env)
  const [, url] = await server.until(/^watch it: (http:\S+)\/#key=/m)
  assert.equal(await readFile(opened, 'utf8'), `${url}/`)
})

test('--open without a browser is a line, and the server goes on', async (t) => {
  const at = world(t)
  const [node, ...args] = [...runwright, '--port', '0', '--open']
  const env = { PATH: at.home }
  const server = start(t, at, [], { env, command: [node!, ...args] })
  await server.until(/^runwright: no browser could be opened: /)
  const [, url] = await server.until(LISTENS)
  await using client = new AsyncClient({ baseUrl: url! })
  assert.equal((await client.get('/api/health')).statusCode, 200)
})

test('RUNWRIGHT_MODEL is the default model, and --model comes before it', async (t) => {
  const env = { RUNWRIGHT_MODEL: 'nobody:x' }
  const at = world(t)
  const refused = serve(t, at, [], env)
  assert.equal(await refused.end(), 2)
  assert.match(refused.err, /nobody/)
  const server = serve(t, at, ['--model', 'builtin:repair'], env)
  await server.until(ALL)
  assert.doesNotMatch(server.out, /see --model/)
})

test('a server goes on when nobody reads its output any more', async (t) => {
  const at = world(t)
  const server = serve(t, at)
  const [, url] = await server.until(LISTENS)
  server.child.stdout!.destroy()
  server.child.kill('SIGINT')
  assert.equal(await server.end(), 0, server.err)
  assert.ok(url !== undefined && readdirSync(at.state).length === 1)
})

test('on Windows it says in one sentence to use WSL', async (t) => {
  const preload = `data:text/javascript,Object.defineProperty(process,'platform',{value:'win32'})`
  const [node, ...program] = runwright
  const command = [node!, '--import', preload, ...program, 'run']
  const started = start(t, world(t), [], { command })
  assert.equal(await started.end(), 1)
  assert.match(started.err, /^runwright: .*WSL: https:\S+\n$/)
})
