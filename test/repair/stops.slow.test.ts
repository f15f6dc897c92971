/** Searches of `builtin:repair` that are stopped in the middle: the workspace stays as it was. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, cpSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, MemoryStore, type AgentEvent } from 'runwright/agent'
import { follow, keepOpen, openEngine, runToEnd, scratch } from '../helpers/engine.js'
import { Children } from '../helpers/kill.js'
import { wholeTree } from '../helpers/whole-tree.js'
import { FIXTURES } from './driver.js'

const children = new Children<typeof import('./child.js')>(
  new URL('child.ts', import.meta.url),
)

/** A project with a bug that no patch repairs. */
function project(t: TestContext): string {
  const cwd = scratch(t)
  cpSync(join(FIXTURES, 'unfinished'), cwd, { recursive: true })
  return cwd
}

interface Hanging {
  readonly cwd: string
  /** Resolves when the tests next run with a patch: they hang until they are killed. */
  readonly patched: () => Promise<void>
}

/** Such a project, the tests of which tell when they run with a patch. */
async function hangingProject(t: TestContext): Promise<Hanging> {
  const cwd = project(t)
  const waiting: (() => void)[] = []
  const server = createServer((socket) => {
    // It is killed.
    socket.on('error', () => undefined)
    for (const resolve of waiting.splice(0)) resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  const source = readFileSync(join(cwd, 'src/levenshtein.js'), 'utf8')
  appendFileSync(join(cwd, 'test/levenshtein.test.js'), `
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
if (readFileSync('src/levenshtein.js', 'utf8') !== ${JSON.stringify(source)}) {
  connect(${(server.address() as AddressInfo).port}, '127.0.0.1')
  await new Promise(() => undefined)
}
`)
  return { cwd, patched: () => new Promise((resolve) => waiting.push(resolve)) }
}

/** All that is there, byte by byte. */
const filesOf = (cwd: string): Record<string, string> => wholeTree(cwd, { times: false })

/** Copies for trials in a folder, and in the temporary folders of a process. */
function copiesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?:^|\/)try-\d+-[^/]*$/.test(path))
}

function copiesOf(pid: number): string[] {
  const theirs = new RegExp(`^runwright-sealed-\\d+-${pid}-`)
  return readdirSync(tmpdir())
    .filter((name) => theirs.test(name))
    .flatMap((name) => copiesIn(join(tmpdir(), name)))
}

/** Accepts the event that starts the first trials of a run. */
function firstTrials(): (event: AgentEvent) => boolean {
  let callId: string | undefined
  return ({ kind, payload }) => {
    const { tool, call_id: id } = payload as { tool?: string; call_id?: string }
    if (kind === 'tool_call' && tool === 'try_patches') callId ??= id
    return kind === 'tool_started' && callId !== undefined && id === callId
  }
}

test('a run that is aborted when its first trials begin changes nothing', async (t) => {
  const cwd = project(t)
  const before = filesOf(cwd)
  const { engine } = await openEngine(t, { cwd })
  const { details } = await engine.create({ goal: 'repair', check: 'node --test', cwd })
  const events = await follow(engine, details.run_id, firstTrials())
  assert.equal(events.at(-1)!.kind, 'tool_started')
  await engine.abort(details.run_id)
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).status, 'aborted')
  await engine.close()
  assert.deepEqual(filesOf(cwd), before)
  assert.deepEqual(copiesOf(process.pid), [])
})

test('a run that is aborted while tests run with a patch changes nothing', async (t) => {
  const { cwd, patched } = await hangingProject(t)
  const before = filesOf(cwd)
  const { engine } = await openEngine(t, { cwd })
  const running = patched()
  const { details } = await engine.create({ goal: 'repair', check: 'node --test', cwd })
  await running
  assert.ok(copiesOf(process.pid).length > 0, 'the tests run in a copy')
  await engine.abort(details.run_id)
  await follow(engine, details.run_id)
  assert.equal((await engine.get(details.run_id)).status, 'aborted')
  await engine.close()
  assert.deepEqual(filesOf(cwd), before)
  assert.deepEqual(copiesOf(process.pid), [])
})

for (const max_tool_calls of [3, 4, 5, 6, 7]) {
  test(`a run with ${max_tool_calls} tool calls changes nothing`, async (t) => {
    const cwd = project(t)
    const before = filesOf(cwd)
    const { engine } = await openEngine(t, { cwd })
    const { details } = await runToEnd(engine, {
      goal: 'repair', check: 'node --test', cwd, max_tool_calls,
    })
    assert.equal(details.end_reason, 'tool_call_budget')
    await engine.close()
    assert.deepEqual(filesOf(cwd), before)
    assert.deepEqual(copiesOf(process.pid), [])
  })
}

test('a run whose time is over while tests run with a patch changes nothing', async (t) => {
  const { cwd } = await hangingProject(t)
  const before = filesOf(cwd)
  const { engine } = await openEngine(t, { cwd })
  const { details } = await runToEnd(engine, {
    goal: 'repair', check: 'node --test', cwd, max_seconds: 1,
  })
  assert.equal(details.end_reason, 'time_budget')
  await engine.close()
  assert.deepEqual(filesOf(cwd), before)
  assert.deepEqual(copiesOf(process.pid), [])
})

test('an engine that closes while tests run with a patch leaves no copy; the next goes on',
  async (t) => {
    const { cwd, patched } = await hangingProject(t)
    const before = filesOf(cwd)
    const store = keepOpen(new MemoryStore())
    const first = await openEngine(t, { cwd, store })
    const running = patched()
    const { details } = await first.engine.create({ goal: 'repair', check: 'node --test', cwd })
    await running
    await first.engine.close()
    assert.deepEqual(filesOf(cwd), before)
    assert.deepEqual(copiesOf(process.pid), [])

    const again = patched()
    const { engine } = await openEngine(t, { cwd, store })
    await again
    await engine.abort(details.run_id)
    await follow(engine, details.run_id)
    await engine.close()
    assert.deepEqual(filesOf(cwd), before)
    assert.deepEqual(copiesOf(process.pid), [])
  })

test('what a process leaves that is killed while tests run with a patch, the next one removes',
  async (t) => {
    const { cwd, patched } = await hangingProject(t)
    const before = filesOf(cwd)
    const directory = scratch(t)
    const running = patched()
    const child = children.start(t, 'repair', { directory, cwd })
    const runId = await child.line()
    assert.ok(runId !== undefined, 'it made a run')
    await Promise.race([running, child.ended.then(() => assert.fail('it ended'))])
    child.kill()
    await child.ended
    assert.deepEqual(filesOf(cwd), before)
    const left = [...copiesIn(directory), ...copiesOf(child.pid)]
    assert.ok(left.length > 0, 'its copies are there')

    const again = patched()
    const { engine } = await openEngine(t, { cwd, store: new FileStore({ directory }) })
    await again
    await engine.abort(runId)
    const events = await follow(engine, runId)
    assert.ok(events.some(({ kind }) => kind === 'run_recovered'), 'the run was taken up')
    assert.equal((await engine.get(runId)).status, 'aborted')
    await engine.close()
    assert.deepEqual(filesOf(cwd), before)
    assert.deepEqual([...copiesIn(directory), ...copiesOf(child.pid)], [])
    assert.deepEqual(copiesOf(process.pid), [])
  })
