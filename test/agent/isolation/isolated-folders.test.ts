import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { wholeTree } from '../../helpers/whole-tree.js'
import { project } from './small-project.js'

test('a run gets a copy with the name of the folder, private to this user', async (t) => {
  const { folders, cwd, copies } = project(t)
  const before = wholeTree(cwd)
  const copy = await folders.create('run1', cwd, { mounts: false })
  assert.deepEqual(copy, {
    root: join(copies, 'run1', 'project'), original: cwd, readOnly: [], notes: [],
  })
  assert.deepEqual(wholeTree(copy.root, { times: false }), wholeTree(cwd, { times: false }))
  assert.equal(statSync(join(copies, 'run1')).mode & 0o777, 0o700)
  assert.equal(statSync(copies).mode & 0o777, 0o700)
  assert.deepEqual(wholeTree(cwd), before)
  const { notes: _, ...found } = copy
  assert.deepEqual(await folders.find('run1'), found)
  assert.equal(await folders.find('run2'), null)
})

test('a copy that another process makes meanwhile is not removed', async (t) => {
  const place = project(t)
  const { cwd, folders } = place
  await folders.create('run1', cwd, { mounts: false })
  // Stopped here, and without its claim by then: another process has taken the run over.
  const confirm = async (): Promise<void> => {
    const { root } = await place.foldersWith({}).create('run1', cwd, { mounts: false })
    writeFileSync(join(root, 'a.txt'), 'of the other')
    place.write({ '../data/workspaces/.new-run1-unfinished/x': 'of the other' })
  }
  await assert.rejects(folders.create('run1', cwd, { mounts: false, confirm }))
  const { root } = (await folders.find('run1'))!
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'of the other')
  assert.ok(existsSync(join(place.copies, '.new-run1-unfinished/x')))
  const lost = (): Promise<void> => Promise.reject(new Error('claim lost'))
  await assert.rejects(folders.create('run1', cwd, { mounts: false, confirm: lost }), /claim lost/)
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'of the other')
})

test('a copy that is to be removed soon is found no more, and gone when closed', async (t) => {
  const { folders, cwd, copies } = project(t)
  const { root } = await folders.create('run1', cwd, { mounts: false })
  await folders.removeSoon('run1')
  assert.equal(existsSync(root), false)
  assert.equal(await folders.find('run1'), null)
  await folders.removeSoon('run1')
  await folders.close()
  assert.deepEqual(readdirSync(copies), [])
})

test('a sweep of a folder with other things in it keeps them', async (t) => {
  const { folders, cwd, copies } = project(t)
  await folders.create('gone', cwd, { mounts: false })
  const lost = '01932f4c-7c00-7000-8000-000000000001'
  for (const name of ['photos', 'run1', '.old-photos', '.new-photos', '.new-a-b', lost]) {
    mkdirSync(join(copies, name))
    writeFileSync(join(copies, name, 'copy.json'), '{"owner": "photos"}')
  }
  symlinkSync('photos', join(copies, 'album'))
  await folders.sweep(() => Promise.resolve(false))
  const kept = ['.new-a-b', '.new-photos', '.old-photos', 'album', 'photos', 'run1']
  assert.deepEqual(readdirSync(copies).sort(), kept)
})

test('a run id cannot lead out of the folder', async (t) => {
  const { folders, cwd } = project(t)
  for (const id of ['', '..', 'a/b', '.new-x', '../x']) {
    await assert.rejects(folders.create(id, cwd, { mounts: false }), TypeError)
    await assert.rejects(folders.remove(id), TypeError)
    await assert.rejects(folders.find(id), TypeError)
  }
})
