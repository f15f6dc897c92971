import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyTree, removeFolder } from '../../../lib/agent/workspace/copy.js'
import { scratch } from '../../helpers/engine.js'

test('tasks that follow each other share a thread, and others have one each', async (t) => {
  const folder = scratch(t)
  let threads = 0
  const count = (): void => void (threads += 1)
  process.on('worker', count)
  t.after(() => process.off('worker', count))
  mkdirSync(join(folder, 'from'))
  await copyTree(join(folder, 'from'), join(folder, 'to'))
  await removeFolder(join(folder, 'to'))
  assert.equal(threads, 1)
  const all = Array.from({ length: 4 }, async (_, i) => removeFolder(join(folder, `none${i}`)))
  await Promise.all(all)
  assert.equal(threads, 4)
  // Two of them have stayed.
  await Promise.all([removeFolder(join(folder, 'none')), removeFolder(join(folder, 'other'))])
  assert.equal(threads, 4)
})

test('a task that fails is told, and leaves its thread to the next one', async (t) => {
  const folder = scratch(t)
  const copy = copyTree(join(folder, 'missing'), join(folder, 'to'))
  await assert.rejects(copy, { code: 'ERR_AGENT_WORKSPACE_LOST' })
  await removeFolder(join(folder, 'none'))
})
