import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { syncBuiltinESMExports } from 'node:module'
import { test, type TestContext } from 'node:test'
import { FolderTracker, type LookOptions } from '../../../lib/agent/workspace/folder-tracker.js'
import { allRules } from '../../../lib/agent/workspace/left-out.js'
import type { Batch } from '../../../lib/agent/workspace/tree-batches.js'
import {
  WalkedFolder, WalkedRoot, type ReadFile,
} from '../../../lib/agent/workspace/walk-folder.js'
import { readTree } from '../../../lib/agent/workspace/read-tree.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { EditedFolder } from './edited-folder.js'

/** Looks at a folder, and keeps what it sends. */
function looking(folder: string): {
  readonly look: () => Promise<string>
  readonly sent: Map<string, Buffer>
} {
  const tracker = new FolderTracker(allRules({}))
  const sent = new Map<string, Buffer>()
  let previous: string | null = null
  const send = async ({ buffer, hashes, ends }: Batch): Promise<void> => {
    for (const [i, one] of hashes.entries()) {
      sent.set(one, Buffer.from(buffer.slice(ends[i - 1] ?? 0, ends[i])))
    }
  }
  const look = async (): Promise<string> => {
    const options: LookOptions = {
      check: () => undefined, storeContents: true, send, previous, notStoredIn: async () => [],
    }
    return (previous = (await tracker.look(folder, options)).checkpointId)
  }
  return { look, sent }
}

/** Lets the system report these times for every file. */
function freezeTimes(t: TestContext, times: { ms: number }): void {
  for (const name of ['lstatSync', 'fstatSync'] as const) {
    const original = fs[name] as (...args: unknown[]) => fs.Stats
    t.mock.method(fs, name, (...args: unknown[]) => {
      return Object.assign(original(...args), { mtimeMs: times.ms, ctimeMs: times.ms })
    })
  }
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
}

test('a file is read again if it may have changed since without a change of its times', async (t) => {
  const folder = scratch(t)
  const path = join(folder, 'file')
  const { look, sent } = looking(folder)
  const times = { ms: Date.now() }
  freezeTimes(t, times)
  for (const [age, isSeen] of [
    [0, true],
    [1_500, true],
    [-60_000, true],
    [60_000, false],
  ] as const) {
    times.ms = Date.now() - age
    fs.writeFileSync(path, `first ${age}`)
    await look()
    assert.ok(sent.has(hash('sha256', `first ${age}`)))
    fs.writeFileSync(path, `other ${age}`)
    await look()
    assert.equal(sent.has(hash('sha256', `other ${age}`)), isSeen, `${age} ms before the look`)
  }
})

/** Waits until a change has later times than those before, on systems whose clocks tick slowly. */
function nextTick(folder: string): void {
  const probe = `${folder}-probe`
  const times = (): number => {
    fs.writeFileSync(probe, '')
    return fs.statSync(probe).ctimeMs
  }
  for (const before = times(); times() <= before;);
  fs.rmSync(probe)
}

test('edits of files that count as settled are all seen, and nothing else is read', async (t) => {
  const folder = scratch(t)
  const { look, sent } = looking(folder)
  const now = Date.now
  t.mock.method(Date, 'now', () => now() + 3_600_000)
  const read = t.mock.method(fs, 'readSync')
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  const edited = new EditedFolder(folder, new Random(19))
  fs.writeFileSync(join(folder, 'key'), '-----BEGIN PRIVATE KEY-----')
  for (let round = 0; round < 20; round++) {
    for (let edits = round; edits > 0; edits--) edited.edit()
    const id = await look()
    const { entries, leftOut } = await readTree({ get: async (one) => sent.get(one) ?? null }, id)
    assert.deepEqual([...entries], edited.entries())
    assert.deepEqual(leftOut, [{ reason: 'secret', count: 1, paths: ['key'] }])
    read.mock.resetCalls()
    const stored = sent.size
    assert.equal(await look(), id)
    assert.deepEqual([read.mock.callCount(), sent.size], [0, stored])
    nextTick(folder)
  }
})

test('a change that sets the time of the change before is seen', async (t) => {
  const folder = scratch(t)
  const path = join(folder, 'file')
  const { look, sent } = looking(folder)
  const now = Date.now
  t.mock.method(Date, 'now', () => now() + 3_600_000)
  for (const content of ['one', 'two', 'six']) {
    fs.writeFileSync(path, content)
    fs.utimesSync(path, 1, 1)
    await look()
    assert.ok(sent.has(hash('sha256', content)), content)
    nextTick(folder)
  }
})

test('an unchanged folder is not listed again, and new names in it are seen', async (t) => {
  const folder = scratch(t)
  const { look, sent } = looking(folder)
  const now = Date.now
  t.mock.method(Date, 'now', () => now() + 3_600_000)
  const listed = t.mock.method(fs, 'opendirSync')
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  fs.mkdirSync(join(folder, 'a/b'), { recursive: true })
  fs.writeFileSync(join(folder, 'a/file'), 'one')
  const id = await look()
  listed.mock.resetCalls()
  assert.equal(await look(), id)
  // Other file systems are listed each time.
  const knows = [0xef53, 0x01021994].includes(fs.statfsSync(folder).type)
  if (knows) assert.equal(listed.mock.callCount(), 0)
  const { atime, mtime } = fs.statSync(join(folder, 'a'))
  nextTick(folder)
  fs.writeFileSync(join(folder, 'a/new'), 'two')
  fs.utimesSync(join(folder, 'a'), atime, mtime)
  listed.mock.resetCalls()
  assert.notEqual(await look(), id)
  if (knows) assert.equal(listed.mock.callCount(), 1)
  assert.ok(sent.has(hash('sha256', 'two')))
  fs.rmSync(join(folder, 'a/new'))
  assert.equal(await look(), id)
})

test('nothing outside becomes part of a tree, whenever a folder is swapped for a link', async (t) => {
  const now = Date.now
  t.mock.method(Date, 'now', () => now() + 3_600_000)
  const { lstatSync, opendirSync } = fs
  let onCall: () => void = () => undefined
  t.mock.method(fs, 'lstatSync', (...args: Parameters<typeof lstatSync>) => {
    onCall()
    return lstatSync(...args)
  })
  t.mock.method(fs, 'opendirSync', (...args: Parameters<typeof opendirSync>) => {
    onCall()
    return opendirSync(...args)
  })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  for (const looksBefore of [0, 1]) {
    for (let at = 1, isSwapped = true; isSwapped; at++) {
      const top = scratch(t)
      for (const name of ['root', 'outside']) {
        fs.mkdirSync(join(top, name, 'a/b'), { recursive: true })
        for (const path of ['a/file', 'a/b/file']) {
          fs.writeFileSync(join(top, name, path), `${name} ${path}`)
        }
      }
      const { look, sent } = looking(join(top, 'root'))
      for (let i = 0; i < looksBefore; i++) await look()
      let calls = 0
      isSwapped = false
      onCall = () => {
        calls += 1
        if (calls !== at) return
        isSwapped = true
        fs.renameSync(join(top, 'root/a'), join(top, 'away'))
        fs.symlinkSync('../outside/a', join(top, 'root/a'))
      }
      await look()
      onCall = () => undefined
      for (const content of sent.values()) assert.ok(!content.includes('outside a'), `call ${at}`)
    }
  }
})

test('a folder that lies elsewhere, through a link above it, is not opened', (t) => {
  const top = scratch(t)
  fs.mkdirSync(join(top, 'root/a/b'), { recursive: true })
  fs.mkdirSync(join(top, 'outside/b'), { recursive: true })
  using root = new WalkedRoot(join(top, 'root'))
  const opens = (): boolean => {
    const opened = root.open('a/b')
    if (opened instanceof WalkedFolder) opened[Symbol.dispose]()
    return opened !== null
  }
  assert.ok(opens())
  fs.renameSync(join(top, 'root'), join(top, 'moved'))
  assert.ok(opens())
  fs.renameSync(join(top, 'moved/a'), join(top, 'away'))
  fs.symlinkSync('../outside', join(top, 'moved/a'))
  assert.ok(!opens())
})

test('what is sent has its hash, and is what the file held', async (t) => {
  const folder = scratch(t)
  const { look, sent } = looking(folder)
  const contents = ['', 'a', 'x'.repeat(4_300_000), 'y'.repeat(1_000_000), 'z'.repeat(100)]
  for (const [i, content] of contents.entries()) fs.writeFileSync(join(folder, `file${i}`), content)
  await look()
  for (const [one, content] of sent) assert.equal(hash('sha256', content), one)
  for (const content of contents) {
    assert.deepEqual(sent.get(hash('sha256', content))?.toString(), content)
  }
})

/** Reads a file that is changed after each time its size was asked for, before it is read. */
function readWhile(
  folder: string,
  change: (attempt: number) => void,
): { readonly found: unknown; readonly attempts: number } {
  let attempts = 0
  using root = new WalkedRoot(folder)
  using opened = root.open('') as Exclude<ReturnType<WalkedRoot['open']>, null | 'unreadable'>
  const found = opened.read('file', 100, (bytes) => {
    change(++attempts)
    return Buffer.alloc(bytes)
  })
  return { found, attempts }
}

for (const [what, change] of [
  ['grows', (path) => fs.appendFileSync(path, 'more')],
  ['shrinks', (path) => fs.truncateSync(path, 2)],
  ['is changed in place', (path) => fs.writeFileSync(path, 'CONTENT')],
] as [string, (path: string) => void][]) {
  test(`a file that ${what} while it is read is read again`, (t) => {
    const folder = scratch(t)
    const path = join(folder, 'file')
    fs.writeFileSync(path, 'content')
    fs.utimesSync(path, 1, 1)
    const { found, attempts } = readWhile(folder, (attempt) => attempt === 1 && change(path))
    const { content, isWhole } = found as ReadFile
    assert.equal(Buffer.from(content).toString(), fs.readFileSync(path, 'utf8'))
    assert.ok(isWhole)
    assert.equal(attempts, 2)
  })
}

test('a file that changes all the time is read in part, and is not taken for settled', (t) => {
  const folder = scratch(t)
  const path = join(folder, 'file')
  fs.writeFileSync(path, 'content')
  const { found, attempts } = readWhile(folder, () => fs.appendFileSync(path, 'more'))
  assert.equal((found as ReadFile).isWhole, false)
  assert.ok(attempts <= 3)
})

test('a file that outgrows the limit while it is read is too large', (t) => {
  const folder = scratch(t)
  const path = join(folder, 'file')
  fs.writeFileSync(path, 'content')
  const { found } = readWhile(folder, () => fs.writeFileSync(path, 'x'.repeat(101)))
  assert.equal(found, 'large')
})
