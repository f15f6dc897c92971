import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SealedFolders } from '../../../lib/agent/isolation/sealed-folders.js'
import { scratch } from '../../helpers/engine.js'

test('a sweep removes no copy that is being made for a sealed check', async (t) => {
  const folder = scratch(t)
  const cwd = join(scratch(t), 'work')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'a.txt'), 'a')
  const sealed = new SealedFolders({ folder, maxBytes: 2 ** 30, closed: [] })
  const folders = await sealed.open()
  const copies = join(folder, '.sealed')
  let swept = false
  const copy = await folders.create('0193f2a0-0000-7000-8000-000000000000', cwd, {
    mounts: false,
    fill: async () => {
      assert.match(readdirSync(copies).join(), /^\.new-/)
      await sealed.sweep(() => Promise.resolve(false))
      swept = true
      return []
    },
  })
  assert.ok(swept && existsSync(join(copy.root, 'a.txt')))
  await sealed.sweep(() => Promise.resolve(false))
  assert.deepEqual(readdirSync(copies), [])
})
