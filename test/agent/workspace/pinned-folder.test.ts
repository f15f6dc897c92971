import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { WorkspaceError } from 'runwright/agent'
import { captureBaseline } from '../../../lib/agent/goals/protected-files.js'
import { goalRegistry } from '../../../lib/agent/goals/registry.js'
import { openPinned } from '../../../lib/agent/workspace/open.js'
import { PinnedFolder } from '../../../lib/agent/workspace/pinned-folder.js'

/** `cwd`, in `root`, is to be pinned; `other` is another folder. */
interface World {
  readonly root: string
  readonly cwd: string
  readonly other: string
}

function world(t: TestContext): World {
  const top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'runwright-pinned-')))
  t.after(() => fs.rmSync(top, { recursive: true, force: true }))
  for (const name of ['root', 'other']) fs.mkdirSync(join(top, name, 'folder'), { recursive: true })
  fs.writeFileSync(join(top, 'other/folder/secret'), 'the secret')
  fs.writeFileSync(join(top, 'root/folder/own'), 'own')
  const path = (name: string): string => join(top, name)
  return { root: path('root'), cwd: path('root/folder'), other: path('other/folder') }
}

async function pin(t: TestContext, cwd: string): Promise<{ folder: PinnedFolder; lost: Error[] }> {
  const lost: Error[] = []
  const folder = await PinnedFolder.open(cwd, null, (error) => lost.push(error))
  t.after(async () => await folder[Symbol.asyncDispose]())
  return { folder, lost }
}

const isLost =
  (message: RegExp) =>
  (error: unknown): boolean =>
    error instanceof WorkspaceError &&
    error.code === 'ERR_AGENT_WORKSPACE_LOST' &&
    message.test(error.message)

const move = ({ cwd }: World): void => fs.renameSync(cwd, `${cwd}-moved`)

for (const [what, change, message, undo] of [
  ['it is moved', move, /was moved or deleted \(ENOENT\)/, null],
  [
    'a link is put in its place',
    (place: World) => {
      move(place)
      fs.symlinkSync(place.other, place.cwd)
    },
    /was replaced by a link,/,
    ({ cwd }: World) => {
      fs.rmSync(cwd)
      fs.renameSync(`${cwd}-moved`, cwd)
    },
  ],
  [
    'another folder is put in its place',
    (place: World) => {
      move(place)
      fs.renameSync(place.other, place.cwd)
    },
    /was replaced by another folder,/,
    null,
  ],
  [
    'a file is put in its place',
    (place: World) => {
      move(place)
      fs.writeFileSync(place.cwd, '')
    },
    /was replaced by a file,/,
    null,
  ],
  [
    'it is deleted',
    ({ cwd }: World) => fs.rmSync(cwd, { recursive: true }),
    /was moved or deleted/,
    null,
  ],
  [
    'it is deleted and made anew',
    ({ cwd }: World) => {
      fs.rmSync(cwd, { recursive: true })
      fs.mkdirSync(cwd)
    },
    /was replaced by another folder,/,
    null,
  ],
  [
    'a link to another folder is put in the place of its root',
    ({ root, other }: World) => {
      fs.renameSync(root, `${root}-moved`)
      fs.symlinkSync(join(other, '..'), root)
    },
    /was replaced by another folder,/,
    null,
  ],
  [
    'its root is moved, and a link to it put in its place',
    ({ root }: World) => {
      fs.renameSync(root, `${root}-moved`)
      fs.symlinkSync(`${root}-moved`, root)
    },
    /was moved,/,
    ({ root }: World) => {
      fs.rmSync(root)
      fs.renameSync(`${root}-moved`, root)
    },
  ],
  [
    'a file is put in the place of its root',
    ({ root }: World) => {
      fs.renameSync(root, `${root}-moved`)
      fs.writeFileSync(root, '')
    },
    /was replaced by a link or a file \(ENOTDIR\)/,
    null,
  ],
] as const) {
  test(`a pinned folder is lost once ${what}`, async (t) => {
    const place = world(t)
    const { folder, lost } = await pin(t, place.cwd)
    await folder.check()
    change(place)
    await assert.rejects(folder.check(), isLost(message))
    undo?.(place)
    await assert.rejects(folder.check(), isLost(message), 'for good')
    await assert.rejects(folder.guard(() => assert.fail('must not run')), isLost(message))
    assert.equal(lost.length, 1)
  })
}

test('what is put in its place while work is done is found afterwards', async (t) => {
  const place = world(t)
  const { folder } = await pin(t, place.cwd)
  const work = folder.guard(() => {
    move(place)
    return Promise.reject(new Error('the work failed'))
  })
  await assert.rejects(work, isLost(/was moved or deleted/))
})

test('a folder that another one is mounted over is lost; so is one that is unmounted', async (t) => {
  const place = world(t)
  const bind = (): boolean =>
    spawnSync('mount', ['--bind', place.other, place.cwd], { stdio: 'ignore' }).status === 0
  const unmount = (): unknown => execFileSync('umount', ['-l', place.cwd])
  const { folder } = await pin(t, place.cwd)
  if (!bind()) return t.skip('mounting needs privileges')
  const mounted = await pin(t, place.cwd)
  await assert.rejects(folder.check(), isLost(/was replaced by another folder/))
  await mounted.folder.check()
  unmount()
  await assert.rejects(mounted.folder.check(), isLost(/was replaced by another folder/))
})

test('a folder that another user has closed is lost', async (t) => {
  if (process.getuid?.() === 0) return t.skip('root may enter every folder')
  const place = world(t)
  const { folder } = await pin(t, place.cwd)
  fs.chmodSync(place.root, 0)
  t.after(() => fs.chmodSync(place.root, 0o700))
  await assert.rejects(folder.check(), isLost(/cannot be reached \(EACCES\)/))
})

test('a path that leads through a link is not pinned, nor another inode than before', async (t) => {
  const { cwd, root } = world(t)
  const open = async (path: string, device?: string): Promise<void> => {
    const { folder } = await pin(t, cwd)
    const { identity } = folder
    const before = device === undefined ? null : { device: device || identity.device, inode: '1' }
    await (await PinnedFolder.open(path, before, () => undefined))[Symbol.asyncDispose]()
  }
  fs.symlinkSync('folder', join(root, 'alias'))
  fs.symlinkSync(root, `${root}-alias`)
  await assert.rejects(open(join(root, 'alias')), isLost(/was replaced by a link/))
  await assert.rejects(open(join(`${root}-alias`, 'folder')), isLost(/was replaced by a link/))
  await assert.rejects(open(join(root, 'none')), isLost(/was moved or deleted/))
  await assert.rejects(open(cwd, ''), isLost(/is not the folder any more/))
  await open(cwd, 'another device')
})

test('files are opened in the pinned folder even if it was compared before a swap', async (t) => {
  if (process.platform !== 'linux') return t.skip('needs /proc')
  const place = world(t)
  const { workspace, folder } = await openPinned(place.cwd, {}, null, () => undefined)
  t.after(async () => await folder[Symbol.asyncDispose]())
  // The comparison finds nothing: as if the folder was swapped just after it.
  t.mock.method(folder, 'check', () => Promise.resolve())
  await workspace.changes()
  move(place)
  fs.renameSync(place.other, place.cwd)
  for (const path of ['secret', 'own']) {
    await assert.rejects(workspace.readFile(path), WorkspaceError)
    await assert.rejects(workspace.writeFile(path, 'x'), WorkspaceError)
  }
  await assert.rejects(workspace.writeFile('new', 'x'), WorkspaceError)
  await assert.rejects(workspace.list('.'), WorkspaceError)
  const spec = await goalRegistry().resolve('shell: true', place.root)
  const watched = { ...spec, protected: ['*'] }
  const { files } = await captureBaseline(watched, folder.real, folder.path)
  assert.deepEqual(Object.keys(files), ['own'])
  const changes = await workspace.changes()
  assert.ok(!JSON.stringify(changes).includes('secret'))
  assert.deepEqual(fs.readdirSync(place.cwd), ['secret'])
  assert.equal(fs.readFileSync(join(place.cwd, 'secret'), 'utf8'), 'the secret')
})
