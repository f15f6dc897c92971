/** Threads that work for runs: few, however much there is to do. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import type { ToolContext } from 'runwright/agent'
import { searchFilesTool } from '../../../lib/agent/tools/search-files.js'
import { copyTree, removeFolder } from '../../../lib/agent/workspace/copy.js'
import { openPinned } from '../../../lib/agent/workspace/open.js'
import { scratch } from '../../helpers/engine.js'

const MOST = Math.min(availableParallelism(), 4)

/** Counts the threads that live at a time, and those that were started. */
function watchThreads(t: TestContext): { readonly most: () => number; readonly all: () => number } {
  let [living, most, all] = [0, 0, 0]
  const watch = (worker: Worker): void => {
    living += 1
    all += 1
    most = Math.max(most, living)
    worker.once('exit', () => (living -= 1))
  }
  process.on('worker', watch)
  t.after(() => process.off('worker', watch))
  return { most: () => most, all: () => all }
}

/** A folder with so many files of a byte. */
function folderOf(t: TestContext, files: number): string {
  const folder = join(scratch(t), 'folder')
  mkdirSync(folder)
  for (let i = 0; i < files; i++) writeFileSync(join(folder, `${i}.js`), 'x')
  return folder
}

async function copyAndRemove(t: TestContext, files: number, times: number): Promise<void> {
  const from = folderOf(t, files)
  const target = scratch(t)
  await Promise.all(
    Array.from({ length: times }, async (_, i) => {
      const to = join(target, `${i}`)
      await copyTree(from, to)
      assert.equal(readdirSync(to).length, files)
      await removeFolder(to)
      assert.equal(existsSync(to), false)
    }),
  )
}

test('many copies at once share few threads', async (t) => {
  const threads = watchThreads(t)
  for (const files of [70, 100]) await copyAndRemove(t, files, 50)
  assert.ok(threads.all() > 0 && threads.all() <= MOST, `${threads.all()} threads`)
})

test('copying and removing small folders starts no thread', async (t) => {
  const threads = watchThreads(t)
  await copyAndRemove(t, 10, 5)
  assert.equal(threads.all(), 0)
})

test('a copy that is aborted while it waits for a thread is never made', async (t) => {
  const from = folderOf(t, 100)
  const target = scratch(t)
  const working = Array.from({ length: 20 }, (_, i) => copyTree(from, join(target, `${i}`)))
  const stop = new AbortController()
  const waiting = copyTree(from, join(target, 'waiting'), { signal: stop.signal })
  const refused = assert.rejects(waiting, /no more/)
  setImmediate(() => stop.abort(new Error('no more')))
  await refused
  await Promise.all(working)
  assert.equal(existsSync(join(target, 'waiting')), false)
})

test('a task that fails is told, and leaves its thread to the next one', async (t) => {
  const folder = scratch(t)
  const copy = copyTree(join(folder, 'missing'), join(folder, 'to'))
  await assert.rejects(copy, { code: 'ERR_AGENT_WORKSPACE_LOST' })
  await removeFolder(join(folder, 'none'))
})

test('many searches at once share few threads, also with those that copy', async (t) => {
  const threads = watchThreads(t)
  const folder = folderOf(t, 70)
  await copyTree(folder, join(scratch(t), 'copy'))
  const { workspace, folder: pinned } = await openPinned(folder, {}, null, () => undefined)
  t.after(async () => await pinned[Symbol.asyncDispose]())
  const context: ToolContext = {
    workspace, signal: new AbortController().signal, runId: 'run', callId: 'call',
    run: () => assert.fail('no command'),
    startRun: () => assert.fail('no run'),
    copies: { slots: 1, open: () => assert.fail('no copy') },
  }
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      searchFilesTool.execute({ pattern: 'x$', regex: true }, { ...context, runId: `run ${i}` }),
    ),
  )
  for (const result of results) assert.match(JSON.stringify(result), /69\.js:1:x/)
  // The thread of the copies was there before.
  assert.ok(threads.most() <= MOST, `${threads.most()} threads at a time`)
})
