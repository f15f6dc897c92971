/** Patches that are tried in copies: what is told of them, and that the workspace stays as it is. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { availableParallelism, tmpdir } from 'node:os'
import { test, type TestContext } from 'node:test'
import {
  bubblewrapProblem,
  processExecutor,
  type EngineOptions,
  type Executor,
  type JsonObject,
  type ModelRequest,
  type RunDetails,
} from 'runwright/agent'
import { follow, openEngine, runToEnd, scratch, testProvider } from '../helpers/engine.js'

/** A program whose output a patch changes, with a file that a patch can make it delete. */
const FILES = {
  'sum.js': 'const add = (a, b) => a - b\nconst extra = 0\nmodule.exports = { add, extra }\n',
  'check.js': [
    "const { add, extra } = require('./sum.js')",
    "require('node:fs').readFileSync('data.txt')",
    "console.log('begins')",
    "console.log(add(2, 2) === 4 ? 'right' : 'wrong')",
    "if (extra === 1) require('node:fs').unlinkSync('data.txt')",
    'if (extra === 2) for (;;) {}',
    'process.exit(add(2, 2) === 4 ? 0 : 1)',
  ].join('\n'),
  'data.txt': 'data\n',
}
const HELPS = { edits: [{ path: 'sum.js', old_text: 'a - b', new_text: 'a + b' }] }
const IS_WORSE = { edits: [{ path: 'sum.js', old_text: 'a - b', new_text: 'a / b' }] }
const HARMS = { edits: [{ path: 'sum.js', old_text: 'extra = 0', new_text: 'extra = 1' }] }
const HANGS = { edits: [{ path: 'sum.js', old_text: 'extra = 0', new_text: 'extra = 2' }] }
const IS_NOTHING = { edits: [{ path: 'sum.js', old_text: 'not there', new_text: '' }] }
const COMMAND = 'node check.js'

interface Tried {
  readonly cwd: string
  readonly results: readonly string[]
  readonly details: RunDetails
  readonly requests: readonly ModelRequest[]
}

function project(t: TestContext): string {
  const cwd = scratch(t)
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(cwd, name), text)
  return cwd
}

function filesOf(cwd: string): Record<string, string> {
  const names = readdirSync(cwd).sort()
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(cwd, name), 'utf8')]))
}

/** Makes the calls one after the other, and then says that it is done. */
async function run(
  t: TestContext,
  calls: readonly { readonly tool: string; readonly args: JsonObject }[],
  options: Partial<EngineOptions> = {},
): Promise<Tried> {
  const cwd = project(t)
  const requests: ModelRequest[] = []
  const provider = testProvider((request, at) => {
    requests.push(request)
    return at < calls.length ? { calls: [calls[at]!] } : { text: 'done' }
  })
  const { engine } = await openEngine(t, { cwd, providers: [provider], ...options })
  const { details, events } = await runToEnd(engine, {
    goal: 'none', check: 'false', cwd, max_iterations: 1,
  })
  const results = events.flatMap(({ kind, payload }) =>
    kind === 'tool_result' ? [String((payload as { output: string }).output)] : [],
  )
  return { cwd, results, details, requests }
}

const trying = (...patches: JsonObject[]): { tool: string; args: JsonObject } => ({
  tool: 'try_patches', args: { patches, command: COMMAND },
})

/** Copies of this process that are left, wherever they are made. */
function copies(): string[] {
  const mine = new RegExp(`^runwright-sealed-\\d+-${process.pid}-`)
  return readdirSync(tmpdir()).filter((name) => mine.test(name)).flatMap((name) =>
    readdirSync(join(tmpdir(), name)).filter((run) => run.startsWith('try-')),
  )
}

/**
 * A server that ends all its clients once `isTime` of what one has sent and of those connected, and
 * each later one at once; returns its port.
 */
async function serve(
  t: TestContext,
  isTime: (text: string, waiting: readonly Socket[]) => unknown,
): Promise<number> {
  const waiting: Socket[] = []
  let isOpen = false
  const server = createServer((socket) => {
    waiting.push(socket)
    const look = (text: string): void => {
      isOpen ||= Boolean(isTime(text, waiting))
      if (isOpen) for (const each of waiting.splice(0)) each.end()
    }
    socket.on('error', () => {}).on('data', (bytes) => look(String(bytes)))
    look('')
  })
  t.after(() => {
    for (const each of waiting) each.destroy()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

test('what each patch does is told, and the workspace stays as it is', async (t) => {
  const { cwd, results } = await run(t, [trying(IS_WORSE, HELPS, IS_NOTHING)])
  const times = results[0]!.replaceAll(/\d+ ms/g, 'N ms')
  assert.equal(
    times,
    '2 patches tried, 1 with exit code 0, 0 reached the time limit, 1 could not be made\n' +
      'Patch 1: exit code 1 (N ms), same output\n' +
      'Patch 2: exit code 0 (N ms)\n' +
      '  @@ -2,1 +2,1 @@\n' +
      '  -wrong\n' +
      '  +right\n' +
      'Patch 3: could not be made: old_text was not found in sum.js. Read the file again and copy ' +
      'the text exactly.\n' +
      'Without a patch: exit code 1 (N ms)\n' +
      '  begins\n' +
      '  wrong',
  )
  assert.deepEqual(filesOf(cwd), FILES)
})

test('a patch that reaches its time limit is said to have done so', async (t) => {
  const { args } = trying(HANGS, HELPS)
  const call = { tool: 'try_patches', args: { ...args, timeout_ms: 3_000 } }
  const { results } = await run(t, [call])
  assert.match(results[0]!, /^2 patches tried, 1 with exit code 0, 1 reached the time limit\n/)
  assert.match(results[0]!, /^Patch 1: exit code 124 \(reached its time limit of 3000 ms\)/m)
  assert.match(results[0]!, /^Patch 2: exit code 0/m)
})

test('a patch that harms its copy leaves nothing to those after it', async (t) => {
  const { cwd, results } = await run(t, [
    trying(...Array.from({ length: 6 }, () => HARMS), ...Array.from({ length: 6 }, () => HELPS)),
    trying(HELPS),
  ])
  assert.match(results[0]!, /^12 patches tried, 6 with exit code 0/)
  assert.match(results[1]!, /^1 patch tried, 1 with exit code 0/)
  assert.deepEqual(filesOf(cwd), FILES)
})

test('patches are tried on the workspace as it is by then', async (t) => {
  const edit = { tool: 'edit_file', args: HELPS.edits[0]! }
  const { results } = await run(t, [trying(IS_WORSE), edit, trying(HARMS)])
  assert.match(results[0]!, /^Without a patch: exit code 1/m)
  assert.match(results[2]!, /^Without a patch: exit code 0 .*\n {2}begins\n {2}right$/m)
})

test('patches do not wait for the run without one', async (t) => {
  if (availableParallelism() < 2) return t.skip('needs two cores')
  // Lets clients go when there are two of them.
  const port = await serve(t, (_, waiting) => waiting.length > 1)
  const { results } = await run(t, [{
    tool: 'try_patches',
    args: {
      patches: [IS_WORSE],
      command: `node -e "require('node:net').connect(${port}, '127.0.0.1').resume()"`,
    },
  }])
  assert.match(results[0]!, /^1 patch tried, 1 with exit code 0, 0 reached the time limit/)
})

test('how long a patch may take is known once the run without one is over', async (t) => {
  if (availableParallelism() < 2) return t.skip('needs two cores')
  const port = await serve(t, (text) => text.includes('patched'))
  // The one without a patch ends when the other one hangs.
  const script = "const { extra } = require('./sum.js'); const socket = require('node:net')" +
    `.connect(${port}, '127.0.0.1').resume(); if (extra === 2) socket.write('patched'); ` +
    "socket.on('close', () => { if (extra === 2) for (;;) {} })"
  const { results } = await run(t, [{
    tool: 'try_patches', args: { patches: [HANGS], command: `node -e "${script}"` },
  }])
  assert.match(results[0]!, /^1 patch tried, 0 with exit code 0, 1 reached the time limit/)
  assert.match(results[0]!, /^Patch 1: exit code 124 \(reached its time limit of \d+ ms\)/m)
  assert.match(results[0]!, /^Without a patch: exit code 0/m)
})

test('a slow run without a patch leaves time for all patches', async (t) => {
  const now = performance.now.bind(performance)
  let later = 0
  t.mock.method(performance, 'now', () => now() + later)
  // Once the run without a patch has begun, more than the time for patches is over.
  const port = await serve(t, (text) => {
    if (text.includes('as it is')) later = 100_000
    return later > 0
  })
  const script = "const isPatched = require('node:fs').readFileSync('sum.js', 'utf8')" +
    ".includes('a / b'); require('node:net')" +
    `.connect(${port}, '127.0.0.1').end(isPatched ? 'patched' : 'as it is').resume()`
  const { results } = await run(t, [{
    tool: 'try_patches',
    args: { patches: [IS_WORSE, IS_WORSE, IS_WORSE], command: `node -e "${script}"` },
  }])
  assert.match(results[0]!, /^3 patches tried, /)
})

test('a copy stays in use when a run has written what it writes without a patch', async (t) => {
  const port = await serve(t, (text) => text.includes('patched'))
  // The one without a patch waits for another one, and then takes a while longer.
  const script = "const fs = require('node:fs'); fs.appendFileSync('data.txt', 'x')\n" +
    "console.log('run ' + fs.readFileSync('data.txt', 'utf8').split('x').length + ' in here')\n" +
    "const isPatched = fs.readFileSync('sum.js', 'utf8').includes('a / b')\n" +
    `const socket = require('node:net').connect(${port}, '127.0.0.1').resume()\n` +
    "socket.on('error', () => {})\n" +
    "if (isPatched) socket.end('patched')\n" +
    "else socket.on('close', () => { for (const at of [1, 2, 3, 4]) " +
    "require('node:child_process').execFileSync(process.execPath, ['-e', at]) })"
  const jobs = Math.min(availableParallelism(), 8)
  if (jobs < 2) return t.skip('needs two cores')
  const patches = Array.from({ length: 3 * jobs }, () => IS_WORSE)
  const { results } = await run(t, [{
    tool: 'try_patches', args: { patches, command: `node -e "${script.replaceAll('\n', ';')}"` },
  }])
  assert.match(results[0]!, new RegExp(`^${3 * jobs} patches tried, ${3 * jobs} with exit code 0`))
  assert.match(results[0]!, /^Without a patch: exit code 0 .*\n {2}run 2 in here$/m)
  // Told where it differs: the first run in each copy does not.
  const first = results[0]!.match(/^Patch \d+: .* same output$/gm) ?? []
  assert.equal(first.length, jobs - 1, results[0])
})

test('nothing is left of the copies once the run is over', async (t) => {
  await run(t, [trying(HELPS)])
  assert.deepEqual(copies(), [])
})

test('trials run in the sandbox of sealed checks, also with an executor that has none', async (t) => {
  const problem = await bubblewrapProblem()
  if (problem !== null) return t.skip(problem)
  const outside = scratch(t)
  const command = `echo x > ${outside}/planted`
  const { results } = await run(t, [
    { tool: 'try_patches', args: { patches: [HELPS], command } },
    { tool: 'bash', args: { command: `ls ${outside} && ${command}` } },
  ], { executor: 'process' })
  assert.match(results[0]!, /^1 patch tried, 0 with exit code 0/)
  assert.equal(results[1], '')
  assert.deepEqual(readdirSync(outside), ['planted'])
})

test('an executor of the host runs trials itself', async (t) => {
  const host = processExecutor()
  const ran: string[] = []
  const executor: Executor = {
    name: 'own',
    killMarked: (mark) => host.killMarked(mark),
    run: (command, options) => {
      if (options.isolated !== undefined) ran.push(command)
      return host.run(command, options)
    },
  }
  await run(t, [trying(HELPS)], { executor })
  assert.deepEqual(ran, [COMMAND, COMMAND])
})

test('trials wait for a human where writes do', async (t) => {
  const cwd = project(t)
  const provider = testProvider((_, at) => (at === 0 ? { calls: [trying(HELPS)] } : { text: '' }))
  const { engine } = await openEngine(t, { cwd, providers: [provider] })
  const { details } = await engine.create({
    goal: 'none', check: 'false', cwd, max_iterations: 1, approval: 'writes',
  })
  const events = await follow(engine, details.run_id, ({ kind }) => kind === 'human_check_required')
  assert.equal(events.at(-1)!.kind, 'human_check_required')
  await engine.abort(details.run_id)
})

test('a run that is aborted in the middle of trials leaves the workspace as it was', async (t) => {
  const cwd = project(t)
  const { args } = trying(...Array.from({ length: 12 }, () => HANGS))
  const call = { tool: 'try_patches', args: { ...args, timeout_ms: 600_000 } }
  const provider = testProvider(() => ({ calls: [call] }))
  const { engine } = await openEngine(t, { cwd, providers: [provider] })
  const { details } = await engine.create({ goal: 'none', check: 'false', cwd })
  await follow(engine, details.run_id, ({ kind }) => kind === 'tool_started')
  await engine.abort(details.run_id)
  await follow(engine, details.run_id)
  assert.deepEqual(filesOf(cwd), FILES)
  await engine.close()
  assert.deepEqual(copies(), [])
})

test('arguments beyond the limits are refused', async (t) => {
  const { results } = await run(t, [trying(...Array.from({ length: 65 }, () => HELPS))])
  assert.match(results[0]!, /patches/)
  assert.doesNotMatch(results[0]!, /tried/)
})
