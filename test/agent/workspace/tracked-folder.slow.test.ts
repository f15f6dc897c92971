import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'node:test'
import { StoreError } from 'runwright/agent'
import { objectsOf, readContent, readTree } from '../../../lib/agent/workspace/read-tree.js'
import { scratch } from '../../helpers/engine.js'
import { Captures, watched, playEdits } from './captures.js'

test('30 folders that are edited at random are captured as their models are', async (t) => {
  for (let seed = 1; seed <= 30; seed++) await playEdits(t, seed, 20)
})

test('packages that are installed later are told, and make no other tree', async (t) => {
  const captures = new Captures(t)
  for (let i = 0; i < 101; i++) captures.write(`${i}/a`)
  const { checkpoint_id } = await captures.capture()
  for (let i = 0; i < 101; i++) captures.write(`${i}/node_modules/x/y`)
  const { left_out, ...second } = await captures.capture()
  assert.equal(second.checkpoint_id, checkpoint_id)
  assert.deepEqual(left_out.map(({ reason, count }) => [reason, count]), [['passed_over', 101]])
  assert.equal(left_out[0]!.paths.length, 100)
})

test('an error of the store ends a capture, and the next one stores what is missing', async (t) => {
  const broken = new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the disk is full')
  for (const failing of ['has', 'put']) {
    // Two batches of contents, one of folders, and the top.
    for (const failAt of [1, 2, 3, 4]) {
      const captures = new Captures(t)
      captures.write('before')
      await captures.capture()
      for (let i = 0; i < 600; i++) captures.write(`folder/file${i}`, `content ${i}`)
      let calls = 0
      const objects = watched(captures.objects, (call) => {
        if (call === failing && ++calls === failAt) throw broken
      })
      await assert.rejects(captures.capture(objects), broken)
      // What nothing durable refers to is reclaimed.
      const kept = new Set<string>()
      const { objects: blobs, previous } = captures
      for await (const one of objectsOf(blobs, previous!, new Set())) kept.add(one)
      const stored = await blobs.list(null, 1e6)
      await captures.objects.delete(stored.filter((one) => !kept.has(one)), 0)
      await captures.capture()
      const { entries } = await readTree(captures.objects, captures.previous!)
      assert.equal(entries.size, 601)
      for (const entry of entries.values()) await readContent(captures.objects, entry)
    }
  }
})

test('swapping folders for links during a capture never leads outside', async (t) => {
  const top = scratch(t)
  const captures = new Captures(t, {}, join(top, 'root'))
  const inside = new Set<string>()
  for (let i = 0; i < 200; i++) {
    const content = `inside ${i}`
    inside.add(hash('sha256', content))
    captures.write(`a/b/c/file${i}`, content)
    const outside = join(top, 'outside/c')
    fs.mkdirSync(outside, { recursive: true })
    fs.writeFileSync(join(outside, `file${i}`), `outside ${i}`)
  }
  const target = join(top, 'outside')
  inside.add(hash('sha256', target))
  const [folder, away] = [join(captures.root, 'a/b'), join(top, 'away')]
  let swaps = 0
  for (let round = 0; round < 20; round++) {
    let isDone = false
    const capture = captures.capture().finally(() => (isDone = true))
    for (; !isDone; swaps++) {
      fs.renameSync(folder, away)
      fs.symlinkSync(target, folder)
      fs.unlinkSync(folder)
      fs.renameSync(away, folder)
      if (swaps % 5 === 0) await nextTurn()
    }
    await capture
    const { entries } = await readTree(captures.objects, captures.previous!)
    for (const [path, { sha256 }] of entries) assert.ok(inside.has(sha256), path)
    await captures.restart()
  }
  t.diagnostic(`${swaps} swaps`)
})
