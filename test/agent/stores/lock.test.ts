import assert from 'node:assert/strict'
import {
  existsSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { SystemDisk, type FileStat } from '../../../lib/agent/stores/file/disk.js'
import { DirectoryLock } from '../../../lib/agent/stores/file/lock.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { forgeLock, openStore } from './store-files.js'

const LOCKED = { code: 'ERR_AGENT_STORE_LOCKED' }

test('a second store of a directory is refused with the process that holds it', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  await assert.rejects(openStore(directory), ({ code, message }: NodeJS.ErrnoException) => {
    assert.equal(code, 'ERR_AGENT_STORE_LOCKED')
    assert.ok(
      message.includes(directory) && message.includes(`process ${process.pid} on ${hostname()}`),
    )
    return true
  })
  await store.close()
  assert.equal(existsSync(join(directory, 'lock')), false)
  await (await openStore(directory)).close()
})

for (const { title, changes, held } of [
  { title: 'of a running process', changes: {}, held: true },
  { title: 'of a reused pid', changes: { started: '1' }, held: false },
  { title: 'of an unused pid', changes: { pid: 4_194_304 }, held: false },
  { title: 'from before the last boot', changes: { boot: 'earlier' }, held: false },
  { title: 'of another container, just refreshed,', changes: { namespace: 'pid:[1]' }, held: true },
  {
    title: 'of another machine, just refreshed,',
    changes: { boot: 'x', host: 'elsewhere' },
    held: true,
  },
]) {
  test(`a lock ${title} is ${held ? 'respected' : 'taken over'}`, async (t) => {
    const directory = scratch(t)
    forgeLock(directory, changes)
    if (held) await assert.rejects(openStore(directory), LOCKED)
    else await (await openStore(directory)).close()
  })
}

for (const { title, ageMs } of [
  { title: 'for a minute', ageMs: 60_000 },
  { title: 'since the time of day was set back', ageMs: -48 * 3_600_000 },
]) {
  test(`a lock of another container that is not refreshed ${title} is taken over`, async (t) => {
    const directory = scratch(t)
    const path = forgeLock(directory, { namespace: 'pid:[1]' })
    const refreshed = new Date(Date.now() - ageMs)
    utimesSync(path, refreshed, refreshed)
    await (await openStore(directory)).close()
  })
}

for (const content of ['', '{', 'null', '{"pid":"x"}', '{"pid":-1}']) {
  test(`a lock file with the content ${JSON.stringify(content)} is taken over`, async (t) => {
    const directory = scratch(t)
    writeFileSync(join(directory, 'lock'), content)
    writeFileSync(join(directory, 'lock.takeover'), content)
    await (await openStore(directory)).close()
    assert.deepEqual(readdirSync(directory).filter((name) => name.startsWith('lock')), [])
  })
}

test('a takeover that begins meanwhile, by another process, is not disturbed', (t) => {
  const directory = scratch(t)
  const lock = forgeLock(directory, { pid: 4_194_304 })
  const guard = `${lock}.takeover`
  const content = readFileSync(lock, 'utf8').replace('4194304', String(process.pid))
  class Slow extends SystemDisk {
    #looked = false

    /** The other process begins once this one has looked for a guard in vain. */
    #begin(path: string): void {
      if (path !== guard || this.#looked) return
      this.#looked = true
      writeFileSync(guard, content)
    }

    override stat(path: string): FileStat {
      try {
        return super.stat(path)
      } finally {
        this.#begin(path)
      }
    }

    override open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
      try {
        return super.open(path, flags)
      } finally {
        this.#begin(path)
      }
    }
  }
  assert.throws(() => DirectoryLock.acquire(directory, new Slow()), LOCKED)
  assert.equal(readFileSync(guard, 'utf8'), content)
})

test('a store does not remove a lock by which another process has replaced its own', async (t) => {
  const directory = scratch(t)
  const store = await openStore(directory)
  writeFileSync(join(directory, 'other'), '{"pid":1,"token":"other"}')
  renameSync(join(directory, 'other'), join(directory, 'lock'))
  await store.close()
  assert.equal(existsSync(join(directory, 'lock')), true)
})

test('a process whose lock file is gone or replaced stops, and leaves the other lock', async (t) => {
  for (const change of ['removed', 'replaced'] as const) {
    const directory = scratch(t)
    const store = await openStore(directory)
    await store.append('a', sampleRun('a'))
    if (change === 'removed') rmSync(join(directory, 'lock'))
    else {
      const other = await openStore(scratch(t))
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
