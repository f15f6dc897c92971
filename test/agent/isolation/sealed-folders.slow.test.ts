import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SealedFolders } from '../../../lib/agent/isolation/sealed-folders.js'
import { scratch } from '../../helpers/engine.js'

const RUN = '0193f2a0-0000-7000-8000-000000000000'

test('a sweep removes no copy that is being made for a sealed check', async (t) => {
  const folder = scratch(t)
  const cwd = join(scratch(t), 'work')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'a.txt'), 'a')
  const sealed = new SealedFolders({ folder, maxBytes: 2 ** 30, closed: [] })
  const folders = await sealed.open()
  const copies = join(folder, '.sealed')
  let swept = false
  const copy = await folders.create(RUN, cwd, {
    mounts: false,
    fill: async () => {
      assert.match(readdirSync(copies).join(), /^\.new-/)
      await sealed.sweep(() => Promise.resolve(false))
      swept = true
      return []
    },
  })
  await sealed.sweep(() => Promise.resolve(false))
  assert.ok(swept && existsSync(join(copy.root, 'a.txt')))
  await folders.removeSoon(RUN)
  await sealed.close()
  assert.deepEqual(readdirSync(copies), [])
})

const live = (): Promise<boolean> => Promise.resolve(true)

for (const isShared of [false, true]) {
  const what = isShared ? 'is kept while others may use it' : 'goes, though its run goes on'
  test(`the copy of a dead process ${what}`, async (t) => {
    const folder = scratch(t)
    const cwd = join(scratch(t), 'work')
    mkdirSync(cwd)
    const options = { folder, maxBytes: 2 ** 30, closed: [], isShared }
    const dead = await new SealedFolders(options).open()
    await dead.create(RUN, cwd, { mounts: false })
    const copies = join(folder, '.sealed')
    const sealed = new SealedFolders(options)
    await sealed.sweep(live)
    assert.deepEqual(readdirSync(copies), isShared ? [RUN] : [])
    // Its run is taken over, and checked while the folder is swept.
    const folders = await sealed.open()
    const [, copy] = await Promise.all([
      sealed.sweep(live), folders.create(RUN, cwd, { mounts: false }),
    ])
    await sealed.sweep(live)
    assert.ok(existsSync(copy.root), 'a copy in use stays')
    await folders.removeSoon(RUN)
    await dead.create(RUN, cwd, { mounts: false })
    await sealed.sweep(live)
    assert.deepEqual(readdirSync(copies), isShared ? [RUN] : [], 'it is not in use any more')
  })
}
