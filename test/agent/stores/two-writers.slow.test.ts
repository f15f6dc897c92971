import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, type RunRecord } from 'runwright/agent'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import type { LockHolder } from '../../../lib/agent/stores/file/lock.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { Children, type Mortal } from '../../helpers/kill.js'
import { assertHolds, forgeLock, openStore } from './store-files.js'

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)
const LOCKED = { code: 'ERR_AGENT_STORE_LOCKED' }
/** Runs a process in a pid namespace of its own. */
const IN_NAMESPACE = [
  'unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child',
]

/** A container, to a lock: a process whose pid means nothing outside. */
function inContainer(name: string): LockHolder {
  return { pid: 1, started: null, boot: 'here', namespace: name, host: name, token: name }
}

/** Makes a lock look as if its holder had been stopped a minute ago. */
function expireLock(directory: string): void {
  const old = new Date(Date.now() - 60_000)
  utimesSync(join(directory, 'lock'), old, old)
}

function noNamespaces(): string | undefined {
  const [unshare = '', ...flags] = IN_NAMESPACE
  if (spawnSync(unshare, [...flags, 'true']).status === 0) return undefined
  return 'this kernel does not let this user create pid namespaces'
}

/** Starts a process that writes to a store in a container. */
function startContainer(t: TestContext, directory: string): Mortal {
  return children.start(t, 'obey', { directory }, { under: IN_NAMESPACE })
}

/** Sends a line and resolves with the answer. */
async function tell(container: Mortal, line: string): Promise<string | undefined> {
  container.send(line)
  return await container.line()
}

/** Signals the process inside; `unshare` itself is its parent. */
function signalInside({ pid }: Mortal, name: 'SIGSTOP' | 'SIGCONT'): void {
  process.kill(Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()), name)
}

async function end(container: Mortal): Promise<void> {
  container.sendEnd()
  await container.ended
}

test('of two containers on one volume, the one that was stopped too long gives up', async (t) => {
  const missing = noNamespaces()
  if (missing !== undefined) return t.skip(missing)
  const directory = join(scratch(t), 'data')
  const first = startContainer(t, directory)
  assert.equal(await first.line(), 'open')
  assert.equal(await tell(first, 'append a1'), '+ a1')
  signalInside(first, 'SIGSTOP')
  // Waits in the pipe, and is the first thing that the process sees when it wakes up.
  first.send('append a2')
  const early = startContainer(t, directory)
  assert.equal(await early.line(), '! open ERR_AGENT_STORE_LOCKED')
  await early.ended
  expireLock(directory)
  const second = startContainer(t, directory)
  assert.equal(await second.line(), 'open')
  for (const id of ['b1', 'b2', 'b3']) assert.equal(await tell(second, `append ${id}`), `+ ${id}`)
  signalInside(first, 'SIGCONT')
  assert.equal(await first.line(), '! a2 ERR_AGENT_STORE_LOCKED')
  for (const command of ['append a3', 'compact', 'check']) {
    assert.match((await tell(first, command))!, /ERR_AGENT_STORE_LOCKED/)
  }
  await end(first)
  assert.equal(await tell(second, 'append b4'), '+ b4')
  assert.equal(await tell(second, 'compact'), '+ compact')
  await end(second)
  const store = await openStore(directory)
  const ids = ['a1', 'b1', 'b2', 'b3', 'b4']
  await assertHolds(store, new Map(ids.map((id) => [id, sampleRun(id, { records: 6 })])))
  assert.deepEqual(store.damage(), { runs: [], files: [] })
  await store.close()
})

/** A disk whose operations wait, or call a hook, at points that a test chooses. */
class StoppableDisk extends SystemDisk {
  /** Called once before the n-th operation from now on: the moment at which the process stops. */
  stopAt: { left: number; readonly act: () => void } | null = null

  #step(): void {
    const { stopAt } = this
    if (stopAt === null || --stopAt.left > 0) return
    this.stopAt = null
    stopAt.act()
  }

  override open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
    this.#step()
    return super.open(path, flags)
  }

  override writeNow(fd: number, data: Buffer, position: number): void {
    this.#step()
    super.writeNow(fd, data, position)
  }

  override async write(fd: number, data: Buffer, position: number): Promise<void> {
    this.#step()
    await super.write(fd, data, position)
  }

  override async sync(fd: number): Promise<void> {
    this.#step()
    await super.sync(fd)
  }

  override truncate(fd: number, length: number): void {
    this.#step()
    super.truncate(fd, length)
  }

  override rename(from: string, to: string): void {
    this.#step()
    super.rename(from, to)
  }

  override remove(path: string): void {
    this.#step()
    super.remove(path)
  }

  override syncDirectory(path: string): void {
    this.#step()
    super.syncDirectory(path)
  }
}

/** Runs the second process to its end while the first one is stopped, hence synchronously. */
function takeOverNow(directory: string): void {
  expireLock(directory)
  const input = 'append b1\nappend b2\ncompact\nappend b3\nclose\n'
  const [unshare = '', ...words] = children.command('obey', { directory }, { under: IN_NAMESPACE })
  const { stdout } = spawnSync(unshare, words, { input, encoding: 'utf8' })
  assert.equal(stdout, 'open\n+ b1\n+ b2\n+ compact\n+ b3\n0 steps\n')
}

/** What a process does that is stopped at one of the operations of this. */
async function workAndCompact(store: FileStore, acknowledged: Set<string>): Promise<void> {
  for (const id of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']) {
    await store.append(id, sampleRun(id, { records: 6 }))
    acknowledged.add(id)
  }
  for (const id of ['a1', 'a3', 'a5']) {
    await store.delete(id)
    acknowledged.delete(id)
  }
  await store.compact()
  await store.append('a9', sampleRun('a9', { records: 6 }))
  acknowledged.add('a9')
}

test('a process that is taken over before any of its disk operations harms nothing', async (t) => {
  const missing = noNamespaces()
  if (missing !== undefined) return t.skip(missing)
  const folder = scratch(t, 'in memory')
  let stops = 0
  for (let at = 1; ; at += 3) {
    const directory = join(folder, `data-${at}`)
    const disk = new StoppableDisk()
    const store = new FileStore({ directory, segmentBytes: 4 << 10 }, disk, inContainer('first'))
    await store.open()
    const acknowledged = new Set<string>()
    disk.stopAt = {
      left: at,
      act: () => {
        stops += 1
        takeOverNow(directory)
      },
    }
    await workAndCompact(store, acknowledged).catch((error: NodeJS.ErrnoException) => {
      assert.equal(error.code, LOCKED.code, `stopped before operation ${at}`)
    })
    if (disk.stopAt !== null) {
      await store.close()
      break
    }
    await assert.rejects(store.append('late', sampleRun('late')), LOCKED)
    await assert.rejects(store.check(), LOCKED)
    assert.equal((store.lost?.reason as NodeJS.ErrnoException).code, LOCKED.code)
    await store.close()
    const again = await openStore(directory)
    assert.deepEqual(again.damage(), { runs: [], files: [] }, `stopped before operation ${at}`)
    const listed = (await again.list({ limit: 100 })).heads.map(({ details }) => details.run_id)
    for (const id of [...acknowledged, 'b1', 'b2', 'b3']) {
      // A deletion under way may have become durable before the other process read the journal.
      if (!listed.includes(id)) assert.match(id, /^a[135]$/, `stopped before operation ${at}`)
    }
    const logs = new Map<string, RunRecord[]>()
    for (const id of listed) logs.set(id, sampleRun(id, { records: 6 }))
    await assertHolds(again, logs)
    await again.close()
    rmSync(directory, { recursive: true })
  }
  assert.ok(stops > 20, `${stops} stops`)
})

test('the lock of a process that was killed is taken over', async (t) => {
  const directory = join(scratch(t), 'data')
  const child = children.start(t, 'append', { directory, workers: 8, generation: 0 })
  assert.equal(await child.line(), 'ready')
  await assert.rejects(openStore(directory), LOCKED)
  child.kill()
  await child.ended
  await (await openStore(directory)).close()
})

test('of several processes that find a stale lock, exactly one takes it over', async (t) => {
  const directory = scratch(t)
  forgeLock(directory, { pid: 4_194_304 })
  const rivals = Array.from({ length: 5 }, () => children.start(t, 'acquireLock', { directory }))
  const nextLines = () => Promise.all(rivals.map((child) => child.line()))
  assert.deepEqual(await nextLines(), Array(5).fill('ready'))
  for (const child of rivals) child.send('go')
  const outcomes = (await nextLines()).sort()
  assert.deepEqual(outcomes, [...Array(4).fill('ERR_AGENT_STORE_LOCKED'), 'locked'])
})
