import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync, renameSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { FileStore, type RunRecord } from 'runwright/agent'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import type { LockHolder } from '../../../lib/agent/stores/file/lock.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { bundle } from '../../helpers/bundle.js'
import { assertHolds, openStore, temporaryFolder } from './store-files.js'

const LOCKED = { code: 'ERR_AGENT_STORE_LOCKED' }
const IN_NAMESPACE = ['--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child']

/** A container, to a lock: a process whose pid means nothing outside. */
function inContainer(name: string): LockHolder {
  return { pid: 1, started: null, boot: 'here', namespace: name, host: name, token: name }
}

/** Makes a lock look as if its holder had been stopped a minute ago. */
function expireLock(directory: string): void {
  const old = new Date(Date.now() - 60_000)
  utimesSync(join(directory, 'lock'), old, old)
}

/** A process in a pid namespace of its own that writes to a store; see writer-child.ts. */
class Container {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(script: string, directory: string) {
    const stdio = ['pipe', 'pipe', 'inherit'] as const
    this.#child = spawn('unshare', [...IN_NAMESPACE, process.execPath, script, directory], {
      stdio: [...stdio],
    })
    const { stdout } = this.#child
    assert.ok(stdout)
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  }

  async line(): Promise<string> {
    const { value } = (await this.#lines.next()) as { value: string }
    return value
  }

  send(line: string): void {
    this.#child.stdin?.write(`${line}\n`)
  }

  async tell(line: string): Promise<string> {
    this.send(line)
    return this.line()
  }

  /** Signals the process inside; `unshare` itself is its parent. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    const { pid } = this.#child
    const inside = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    process.kill(Number(inside), name)
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.stdin?.end()
    await exit
  }
}

function noNamespaces(): string | undefined {
  if (spawnSync('unshare', [...IN_NAMESPACE, 'true']).status === 0) return undefined
  return 'this kernel does not let this user create pid namespaces'
}

test('of two containers on one volume, the one that was stopped too long gives up', async (t) => {
  const missing = noNamespaces()
  if (missing !== undefined) return t.skip(missing)
  const folder = temporaryFolder(t)
  const directory = join(folder, 'data')
  const script = bundle(new URL('writer-child.ts', import.meta.url), folder)
  const first = new Container(script, directory)
  t.after(() => first.end())
  assert.equal(await first.line(), 'open')
  assert.equal(await first.tell('append a1'), '+ a1')
  first.signal('SIGSTOP')
  // Waits in the pipe, and is the first thing that the process sees when it wakes up.
  first.send('append a2')
  const early = new Container(script, directory)
  assert.equal(await early.line(), '! open ERR_AGENT_STORE_LOCKED')
  await early.end()
  expireLock(directory)
  const second = new Container(script, directory)
  t.after(() => second.end())
  assert.equal(await second.line(), 'open')
  for (const id of ['b1', 'b2', 'b3']) assert.equal(await second.tell(`append ${id}`), `+ ${id}`)
  first.signal('SIGCONT')
  assert.equal(await first.line(), '! a2 ERR_AGENT_STORE_LOCKED')
  for (const command of ['append a3', 'compact', 'check']) {
    assert.match(await first.tell(command), /ERR_AGENT_STORE_LOCKED/)
  }
  await first.end()
  assert.equal(await second.tell('append b4'), '+ b4')
  assert.equal(await second.tell('compact'), '+ compact')
  await second.end()
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
function takeOverNow(script: string, directory: string): void {
  expireLock(directory)
  const input = 'append b1\nappend b2\ncompact\nappend b3\nclose\n'
  const args = [...IN_NAMESPACE, process.execPath, script, directory]
  const { stdout } = spawnSync('unshare', args, { input, encoding: 'utf8' })
  assert.equal(stdout, 'open\n+ b1\n+ b2\n+ compact\n+ b3\n')
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
  const folder = temporaryFolder(t, 'in memory')
  const script = bundle(new URL('writer-child.ts', import.meta.url), folder)
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
        takeOverNow(script, directory)
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

test('a process whose lock file is gone or replaced stops, and leaves the other lock', async (t) => {
  for (const change of ['removed', 'replaced'] as const) {
    const directory = temporaryFolder(t)
    const store = await openStore(directory)
    await store.append('a', sampleRun('a'))
    if (change === 'removed') rmSync(join(directory, 'lock'))
    else {
      const other = await openStore(temporaryFolder(t))
      t.after(() => other.close())
      renameSync(join(directory, 'lock'), join(directory, 'aside'))
      const successor = await openStore(directory)
      t.after(() => successor.close())
    }
    await assert.rejects(store.append('b', sampleRun('b')), LOCKED)
    await assert.rejects(store.head('a'), LOCKED)
    await store.close()
    assert.equal(readdirSync(directory).includes('lock'), change === 'replaced')
  }
})
