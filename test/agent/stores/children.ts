/** Child processes that use a file store until they are killed; tests start them by `Children`. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileStore, StoreError } from 'runwright/agent'
import { DirectoryLock } from '../../../lib/agent/stores/file/lock.js'
import { blob } from '../../../lib/agent/testing/object-contract/suite.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import type { Life } from '../../helpers/mortal-child.js'
import { DeadlyDisk } from './deadly-disk.js'
import { playCase } from './disk-case.js'
import { playLoad } from './disk-load.js'
import { batchAt, RUN_LENGTH } from './kill-plan.js'
import { assertHolds, journalFiles, openStore, readAll } from './store-files.js'

/** Runs that have ended and stay: the store is as large after the last kill as after the tenth. */
const KEPT = 40

/** Appends the rest of a run, and says `+ run seq` for each append that is acknowledged. */
async function appendRest(store: FileStore, runId: string, last: number, life: Life) {
  for (let seq = last; seq < RUN_LENGTH; ) {
    const batch = batchAt(runId, seq + 1)
    await store.append(runId, batch)
    seq += batch.length
    life.say(`+ ${runId} ${seq}`)
  }
}

/** Deletes a run; says `? run` before and `- run` once it is acknowledged. */
async function deleteRun(store: FileStore, runId: string, life: Life) {
  life.say(`? ${runId}`)
  await store.delete(runId)
  life.say(`- ${runId}`)
}

/** Continues stored runs, then creates new ones, and deletes some that have ended, for ever. */
export async function append(
  { directory, workers, generation }: {
    readonly directory: string
    readonly workers: number
    readonly generation: number
  },
  life: Life,
): Promise<void> {
  const store = await openStore(directory, { segmentBytes: 32 << 10 })
  const { heads } = await store.list({ limit: 100_000 })
  const open = heads.filter(({ details }) => details.last_seq < RUN_LENGTH)
  const ended = heads.flatMap(({ details }) =>
    details.last_seq >= RUN_LENGTH ? [details.run_id] : [],
  )
  let created = 0
  const work = async (): Promise<never> => {
    for (;;) {
      const details = open.pop()?.details
      const runId = details?.run_id ?? `run-${generation}-${created++}`
      await appendRest(store, runId, details?.last_seq ?? 0, life)
      ended.push(runId)
      while (ended.length > KEPT) await deleteRun(store, ended.shift()!, life)
    }
  }
  life.say('ready')
  await Promise.all(Array.from({ length: workers }, work))
}

/**
 * Appends to runs and deletes them for ever, with segments so small that the store begins, rewrites
 * and removes files all the time.
 */
export async function appendAndCompact(
  { directory, name }: { readonly directory: string; readonly name: string },
  life: Life,
): Promise<void> {
  life.begin()
  const store = await openStore(directory, { segmentBytes: 2 << 10 }, new DeadlyDisk(life))
  const { heads } = await store.list({ limit: 100_000 })
  const ended = heads.map(({ details }) => details.run_id).reverse()
  for (let i = 0; ; i++) {
    const runId = `${name}-${i}`
    await appendRest(store, runId, 0, life)
    ended.push(runId)
    if (ended.length > 4) await deleteRun(store, ended.shift()!, life)
    await store.compact()
  }
}

/**
 * Stores and removes objects for ever. Says `+ i` for an object that is stored, `? i` for one that
 * is to be removed and `- i` for one that is. First it checks what earlier processes have said.
 */
export async function storeObjects(
  { directory, said }: { readonly directory: string; readonly said: readonly string[] },
  life: Life,
): Promise<void> {
  const objectAt = (i: number) => blob(`object ${i} `.repeat(1 + (i % 7) * 50))
  const hashAt = (i: number): string => objectAt(i).hash
  const say = (sign: string, some: readonly number[]): void =>
    life.say(some.map((i) => `${sign} ${i}`).join('\n'))
  const store = await openStore(directory, {}, new DeadlyDisk(life))
  const { objects } = store
  const known = new Map<number, string>()
  for (const line of said) known.set(Number(line.slice(2)), line.charAt(0))
  for (const [i, sign] of known) {
    const content = await objects.get(hashAt(i))
    if (sign === '+') assert.deepEqual(content && Buffer.from(content), objectAt(i).content, `${i}`)
    // A removal that a crash cut off may or may not have happened; no power was lost.
    if (sign === '-') assert.equal(content, null, `${i} is back`)
  }
  const there = await objects.has([...known.keys()].map(hashAt))
  const held = [...known].filter(([, sign]) => sign === '+').map(([i]) => i)
  for (const i of held) assert.ok(there.has(hashAt(i)), `${i} is not found`)
  assert.deepEqual(store.damage().files, [])

  life.begin()
  for (let i = Math.max(0, ...known.keys()) + 1; ; i += 3) {
    const some = [i, i + 1, i + 2]
    await objects.put(some.map(objectAt))
    say('+', some)
    held.push(...some)
    if (held.length < 60) continue
    // Of the last pack, one stays.
    const old = held.splice(0, 44)
    say('?', old)
    await objects.delete(old.map(hashAt), 0)
    say('-', old)
  }
}

/**
 * Opens a store and obeys lines: `append run`, `compact`, `check`, `close`. Says `open`, then
 * `+ run` for what was acknowledged, and `! run code` for what was refused.
 */
export async function obey(
  { directory }: { readonly directory: string },
  life: Life,
): Promise<void> {
  const store = new FileStore({ directory, segmentBytes: 4 << 10 })
  const refused = (what: string) => (error: StoreError) => life.say(`! ${what} ${error.code}`)
  const isOpen = await store.open().then(() => true, refused('open'))
  if (isOpen !== true) return
  life.say('open')
  for (let line = await life.line(); line !== undefined; line = await life.line()) {
    const [command = '', runId = command] = line.split(' ')
    if (command === 'close') break
    const work =
      command === 'append'
        ? store.append(runId, sampleRun(runId, { records: 6 }))
        : command === 'compact' ? store.compact() : store.check()
    await work.then(() => life.say(`+ ${runId}`), refused(runId))
  }
  await store.close()
}

/**
 * Says `ready`, waits for a line, then acquires a directory's lock and says how it went. Lives on
 * until it is killed, since the lock of a process that has ended is free.
 */
export async function acquireLock(
  { directory }: { readonly directory: string },
  life: Life,
): Promise<void> {
  life.say('ready')
  await life.line()
  try {
    DirectoryLock.acquire(directory)
    life.say('locked')
  } catch (error) {
    life.say((error as StoreError).code)
  }
  await life.line()
}

/** Appends until its file system is full, frees space and continues. */
export async function fillDisk(
  { mount }: { readonly mount: string },
  life: Life,
): Promise<void> {
  const directory = join(mount, 'data')
  const ballast = join(mount, 'ballast')
  writeFileSync(ballast, Buffer.alloc(400_000))
  const store = await openStore(directory, { segmentBytes: 100_000, sync: 'group' })
  const records = sampleRun('a', { records: 4_000, text: 'x'.repeat(200) })
  let at = 0
  let refusal: unknown = null
  while (refusal === null) {
    try {
      await store.append('a', records.slice(at, at + 7))
      at += 7
    } catch (error) {
      refusal = error
    }
  }
  assert.ok(refusal instanceof StoreError && refusal.code === 'ERR_AGENT_STORE_UNAVAILABLE')
  life.say(`refused: ${refusal.message}`)
  const unavailable = { code: 'ERR_AGENT_STORE_UNAVAILABLE' }
  await assert.rejects(store.append('a', records.slice(at, at + 200)), unavailable)
  assert.deepEqual(await readAll(store, 'a'), records.slice(0, at))
  rmSync(ballast)
  await store.append('a', records.slice(at, at + 7))
  await store.close()
  const again = await openStore(directory)
  assert.deepEqual(again.quarantined, [])
  assert.deepEqual(await readAll(again, 'a'), records.slice(0, at + 7))
  await again.close()
}

/**
 * Appends while its data directory is read-only for everything but files that are open, then goes
 * on. A kernel refuses to remount a file system on which a file is open for writing, so a read-only
 * mount of the directory is laid over it.
 */
export async function appendWhileReadOnly({ mount }: { readonly mount: string }): Promise<void> {
  const command = (name: string, ...args: string[]): void => {
    const { status, stderr } = spawnSync(name, args, { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  }
  const directory = join(mount, 'data')
  const store = await openStore(directory, { segmentBytes: 4 << 10, onWarning: () => {} })
  const logs = new Map(['a', 'b', 'c', 'd'].map((id) => [id, sampleRun(id, { records: 40 })]))
  const appendAll = async (from: number, to: number): Promise<void> => {
    for (const [id, records] of logs) await store.append(id, records.slice(from, to))
  }
  await appendAll(0, 10)
  const before = journalFiles(directory).length
  command('mount', '--bind', directory, directory)
  command('mount', '-o', 'remount,bind,ro', directory)
  const refused = { code: 'ERR_AGENT_STORE_UNAVAILABLE', message: /read-only/ }
  await assert.rejects(store.check(), refused)
  await assert.rejects(store.compact(), refused)
  // The segment in use goes on; no other one can be begun.
  await appendAll(10, 30)
  assert.equal(journalFiles(directory).length, before)
  command('umount', directory)
  await store.check()
  await appendAll(30, 40)
  await store.compact()
  assert.ok(journalFiles(directory).length > 0)
  await assertHolds(store, logs)
  await store.close()
  const again = await openStore(directory)
  assert.deepEqual(again.damage(), { runs: [], files: [] })
  await assertHolds(again, logs)
  await again.close()
}

/** Plays the cases of seeds on a simulated disk, and says which fail: seed and error. */
export async function playCases(
  { from, to, step }: { readonly from: number; readonly to: number; readonly step: number },
  life: Life,
): Promise<void> {
  for (let seed = from; seed <= to; seed += step) {
    try {
      await playCase(seed)
      if (seed % 100 === 1) await playLoad(seed)
    } catch (error) {
      life.say(`RUNWRIGHT_DISK_SEED=${seed}: ${(error as Error).stack}`)
    }
  }
}
