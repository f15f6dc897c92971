import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { bundle } from '../../helpers/bundle.js'
import { DirectoryLock } from '../../../lib/agent/stores/file/lock.js'
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

/** The lock that this process would write, changed. */
function forge(directory: string, changes: Partial<LockFile>): string {
  const lock = DirectoryLock.acquire(directory)
  const path = join(directory, 'lock')
  const mine = JSON.parse(readFileSync(path, 'utf8')) as LockFile
  lock.release()
  writeFileSync(path, JSON.stringify({ ...mine, token: 'forged', ...changes }))
  return path
}

test('a second store of the same directory is refused, and told who holds it and where', async (t) => {
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
  { title: 'of a process that lives', changes: {}, held: true },
  { title: 'of a pid that another process has now', changes: { started: '1' }, held: false },
  { title: 'of a pid that is gone', changes: { pid: 4_194_304 }, held: false },
  { title: 'from before the machine was started', changes: { boot: 'earlier' }, held: false },
  {
    title: 'of another container, refreshed just now',
    changes: { namespace: 'pid:[1]' },
    held: true,
  },
  {
    title: 'of another machine, refreshed just now',
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

test('a lock of another container that is not refreshed any more is taken over', async (t) => {
  const directory = temporaryFolder(t)
  const path = forge(directory, { namespace: 'pid:[1]' })
  const old = new Date(Date.now() - 60_000)
  utimesSync(path, old, old)
  await (await openStore(directory)).close()
})

for (const content of ['', '{', 'null', '{"pid":"x"}', '{"pid":-1}']) {
  test(`a lock file with ${JSON.stringify(content)} in it bars nobody`, async (t) => {
    const directory = temporaryFolder(t)
    writeFileSync(join(directory, 'lock'), content)
    writeFileSync(join(directory, 'lock.takeover'), content)
    await (await openStore(directory)).close()
    assert.deepEqual(readdirSync(directory).filter((name) => name.startsWith('lock')), [])
  })
}

test('a store does not remove a lock that another has put in its place', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  writeFileSync(join(directory, 'lock'), '{"pid":1,"token":"other"}')
  await store.close()
  assert.equal(existsSync(join(directory, 'lock')), true)
})

test('of many processes that find a stale lock exactly one takes it over', async (t) => {
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
  const hear = async (child: ChildProcess): Promise<string> => {
    const [data] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [
      Buffer,
    ]
    return data.toString().trim()
  }
  assert.deepEqual(await Promise.all(children.map(hear)), Array(5).fill('ready'))
  const answers = children.map(hear)
  for (const child of children) child.stdin?.write('go\n')
  const outcomes = (await Promise.all(answers)).sort()
  assert.equal(outcomes.filter((outcome) => outcome === 'locked it').length, 1, outcomes.join())
  assert.equal(
    outcomes.filter((outcome) => outcome === 'ERR_AGENT_STORE_LOCKED').length,
    4,
    outcomes.join(),
  )
})
