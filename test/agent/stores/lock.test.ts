import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DirectoryLock } from '../../../lib/agent/stores/file/lock.js'
import { bundle } from '../../helpers/bundle.js'
import { openStore, temporaryFolder } from './store-files.js'

const LOCKED = { code: 'ERR_AGENT_STORE_LOCKED' }

interface LockFile {
  pid: number
  started: string
  boot: string
  namespace: string
  host: string
  token: string
}

/** Writes the lock of this process with some fields changed; returns its path. */
function forge(directory: string, changes: Partial<LockFile>): string {
  const lock = DirectoryLock.acquire(directory)
  const path = join(directory, 'lock')
  const mine = JSON.parse(readFileSync(path, 'utf8')) as LockFile
  lock.release()
  writeFileSync(path, JSON.stringify({ ...mine, token: 'forged', ...changes }))
  return path
}

test('a second store of a directory is refused with the process that holds it', async (t) => {
  const directory = temporaryFolder(t)
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

test('the lock of a process that was killed is taken over', async (t) => {
  const folder = temporaryFolder(t)
  const directory = join(folder, 'data')
  const script = bundle(new URL('kill-child.ts', import.meta.url), folder)
  const child = spawn(process.execPath, [script, directory], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.write('go\n')
  const exited = once(child, 'exit')
  await once(child.stdout, 'data')
  await assert.rejects(openStore(directory), LOCKED)
  child.kill('SIGKILL')
  await exited
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
    const directory = temporaryFolder(t)
    forge(directory, changes)
    if (held) await assert.rejects(openStore(directory), LOCKED)
    else await (await openStore(directory)).close()
  })
}

test('a lock of another container that is no longer refreshed is taken over', async (t) => {
  const directory = temporaryFolder(t)
  const path = forge(directory, { namespace: 'pid:[1]' })
  const old = new Date(Date.now() - 60_000)
  utimesSync(path, old, old)
  await (await openStore(directory)).close()
})

for (const content of ['', '{', 'null', '{"pid":"x"}', '{"pid":-1}']) {
  test(`a lock file with the content ${JSON.stringify(content)} is taken over`, async (t) => {
    const directory = temporaryFolder(t)
    writeFileSync(join(directory, 'lock'), content)
    writeFileSync(join(directory, 'lock.takeover'), content)
    await (await openStore(directory)).close()
    assert.deepEqual(readdirSync(directory).filter((name) => name.startsWith('lock')), [])
  })
}

test('a store does not remove a lock by which another process has replaced its own', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  writeFileSync(join(directory, 'other'), '{"pid":1,"token":"other"}')
  renameSync(join(directory, 'other'), join(directory, 'lock'))
  await store.close()
  assert.equal(existsSync(join(directory, 'lock')), true)
})

test('of several processes that find a stale lock, exactly one takes it over', async (t) => {
  const folder = temporaryFolder(t)
  const script = bundle(new URL('lock-child.ts', import.meta.url), folder)
  const children: ChildProcess[] = []
  t.after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const directory = temporaryFolder(t)
  forge(directory, { pid: 4_194_304 })
  for (let i = 0; i < 5; i++) {
    children.push(
      spawn(process.execPath, [script, directory], { stdio: ['pipe', 'pipe', 'inherit'] }),
    )
  }
  const nextOutput = async ({ stdout }: ChildProcess): Promise<string> =>
    String(await once(stdout as NonNullable<typeof stdout>, 'data')).trim()
  assert.deepEqual(await Promise.all(children.map(nextOutput)), Array(5).fill('ready'))
  const outputs = children.map(nextOutput)
  for (const child of children) child.stdin?.write('go\n')
  const outcomes = (await Promise.all(outputs)).sort()
  assert.deepEqual(outcomes, [...Array(4).fill('ERR_AGENT_STORE_LOCKED'), 'locked'])
})
