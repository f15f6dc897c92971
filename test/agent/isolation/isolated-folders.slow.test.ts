import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { nextTurn } from '../../../lib/internal/time.js'
import { WorkspaceError, WorkspaceTooLargeError } from '../../../lib/agent/errors.js'
import { IsolatedFolders } from '../../../lib/agent/isolation/isolated-folders.js'
import { closedInCopy } from '../../../lib/agent/workspace/closed-folders.js'
import { Project } from '../../helpers/isolated.js'
import { project } from './small-project.js'

test('two runs of one folder have a copy each; making one anew replaces it', async (t) => {
  const { folders, cwd } = project(t)
  const one = await folders.create('run1', cwd, { mounts: false })
  const two = await folders.create('run2', cwd, { mounts: false })
  writeFileSync(join(one.root, 'a.txt'), 'one')
  assert.equal(readFileSync(join(two.root, 'a.txt'), 'utf8'), 'a')
  await folders.create('run1', cwd, { mounts: false })
  assert.equal(readFileSync(join(one.root, 'a.txt'), 'utf8'), 'a')
})

test('names that files beside the copy have are no names of copies', async (t) => {
  for (const name of ['node_modules', 'package.json', '.git', 'copy.json']) {
    const place = new Project(t, name).write({ x: '' })
    const { root } = await place.isolate()
    assert.deepEqual(readdirSync(root), ['x'])
    assert.ok((await place.folders.find('run')) !== null)
  }
})

test('a copy that is handed on stays where it is, and is removed with its new owner', async (t) => {
  const { folders, cwd, copies } = project(t)
  const { root } = await folders.create('run1', cwd, { mounts: false })
  await folders.adopt('run1', 'run2')
  const third = await folders.adopt('run2', 'run3')
  assert.equal(third?.root, root)
  assert.deepEqual(await folders.find('run3'), third)
  assert.equal(await folders.find('run1'), null)
  assert.equal(await folders.find('run2'), null)
  assert.equal(await folders.adopt('run1', 'run4'), null)
  await folders.remove('run1')
  await folders.remove('run2')
  assert.ok(existsSync(root))
  await folders.create('run2', cwd, { mounts: false })
  await folders.remove('run3')
  assert.deepEqual(readdirSync(copies), ['run2'])
})

test('where copies keep their owners, a run replaces and removes its own by its id', async (t) => {
  const { folders, cwd, copies } = project(t)
  const { root } = await folders.create('run1', cwd, { mounts: false })
  await folders.adopt('run1', 'run2')
  const keeping = new IsolatedFolders({
    folder: copies, maxBytes: 2 ** 30, closed: [], keepsOwners: true,
  })
  await keeping.create('run2', cwd, { mounts: false })
  assert.ok(existsSync(root), 'the copy of run1 is not looked at')
  const again = await keeping.create('run2', cwd, { mounts: false })
  assert.ok(existsSync(again.root))
  await keeping.removeSoon('run2')
  await keeping.remove('run2')
  await keeping.close()
  assert.deepEqual(readdirSync(copies), ['run1'])
})

test('a copy that is handed on and removed at once is whole, or gone', async (t) => {
  const { folders, cwd } = project(t)
  for (let i = 0; i < 8; i++) {
    const [from, to] = [`from${i}`, `to${i}`]
    const { root } = await folders.create(from, cwd, { mounts: false })
    const later = (async () => {
      for (let turns = 0; turns < i; turns++) await nextTurn()
      await folders.remove(from)
    })()
    const [adopted] = await Promise.all([folders.adopt(from, to), later])
    assert.equal(existsSync(root), adopted !== null)
    assert.deepEqual(await folders.find(to), adopted)
    await folders.remove(to)
    assert.equal(existsSync(root), false)
  }
})

test('of several runs that take over one copy at once exactly one gets it', async (t) => {
  const place = new Project(t).write({ 'a.txt': 'a' })
  const { cwd, copies } = place
  // They have nothing in common but the folder, as in several processes.
  const takers = Array.from({ length: 4 }, () => place.foldersWith({ isShared: true }))
  let owner = 'run'
  const { root } = await place.folders.create(owner, cwd, { mounts: false })
  for (let round = 0; round < 8; round++) {
    const ids = takers.map((_, i) => `fork${round}-${i}`)
    const adopted = await Promise.all(
      takers.map((folders, i) => folders.adopt(owner, ids[i]!)),
    )
    const won = adopted.flatMap((copy, i) => (copy === null ? [] : [ids[i]!]))
    assert.equal(won.length, 1)
    const found = await Promise.all(takers.map((folders, i) => folders.find(ids[i]!)))
    assert.deepEqual(found, adopted)
    assert.equal(await place.folders.find(owner), null)
    owner = won[0]!
    assert.equal(found.find((copy) => copy !== null)!.root, root)
  }
  await place.folders.remove('run')
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'a')
  await place.folders.remove(owner)
  assert.deepEqual(readdirSync(copies), [])
})

test('a sweep does not remove a copy that was handed on while it asked', async (t) => {
  const { folders, cwd, copies } = project(t)
  const { root } = await folders.create('gone', cwd, { mounts: false })
  await folders.sweep(async (runId) => {
    if (runId === 'gone') await folders.adopt('gone', 'fork')
    return runId !== 'gone'
  })
  assert.equal((await folders.find('fork'))?.root, root)
  // A process that died while it removed one.
  await folders.create('half', cwd, { mounts: false })
  renameSync(join(copies, 'half', 'copy.json'), join(copies, 'half', 'copy.-.json'))
  for (const call of [folders.find('half'), folders.adopt('half', 'other')])
    assert.equal(await call, null)
  assert.ok((await folders.create('half', cwd, { mounts: false })).root)
  renameSync(join(copies, 'half', 'copy.json'), join(copies, 'half', 'copy.-.json'))
  await folders.sweep(() => Promise.resolve(true))
  assert.deepEqual(readdirSync(copies), ['gone'])
})

test('a run whose copy was handed on gets no other one', async (t) => {
  const { folders, cwd, copies } = project(t)
  await folders.create('run1', cwd, { mounts: false })
  const adopted = await folders.adopt('run1', 'run2')
  const message = /^the copy of run run1 was handed on to run run2/
  await assert.rejects(folders.create('run1', cwd, { mounts: false }), { message })
  assert.deepEqual(await folders.find('run2'), adopted)
  await folders.remove('run2')
  assert.deepEqual(readdirSync(copies), [])
})

test('removing is complete, whatever the permissions, and harmless when there is nothing', async (t) => {
  const { folders, cwd, copies } = project(t)
  await folders.remove('run1')
  const { root } = await folders.create('run1', cwd, { mounts: false })
  chmodSync(join(root, 'b'), 0o000)
  mkdirSync(join(copies, '.new-run1-11111111-1111-1111-1111-111111111111'))
  mkdirSync(join(copies, '.new-run10-11111111-1111-1111-1111-111111111111'))
  await folders.remove('run1')
  await folders.remove('run1')
  assert.deepEqual(readdirSync(copies), ['.new-run10-11111111-1111-1111-1111-111111111111'])
})

test('a copy into which a process goes on writing is taken away at once', async (t) => {
  const { folders, cwd, copies } = project(t)
  const { root } = await folders.create('run1', cwd, { mounts: false })
  const loop = 'i=0; echo on; while :; do i=$((i+1)); mkdir -p d$((i%7)) && : > d$((i%7))/$i; done'
  const child = spawn('sh', ['-c', loop], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] })
  const exit = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  await folders.remove('run1').catch(() => undefined)
  assert.equal(await folders.find('run1'), null)
  child.kill('SIGKILL')
  await exit
  await folders.sweep(() => Promise.resolve(true))
  assert.deepEqual(readdirSync(copies), [])
})

test('a sweep removes what no run wants, and nothing else', async (t) => {
  const place = project(t)
  const { cwd, copies } = place
  const folders = place.foldersWith({ isShared: true })
  await folders.sweep(() => Promise.reject(new Error('there is nothing to ask about')))
  for (const id of ['wanted', 'gone', 'handed', 'both']) {
    await folders.create(id, cwd, { mounts: false })
  }
  await folders.adopt('handed', 'taker')
  await folders.adopt('both', 'lost')
  const uuid = '11111111-1111-1111-1111-111111111111'
  for (const name of [`.new-wanted-${uuid}`, `.new-gone-${uuid}`, `.old-${uuid}`]) {
    mkdirSync(join(copies, name, 'deep'), { recursive: true })
  }
  writeFileSync(join(copies, 'README'), 'not ours')
  // Of an earlier version.
  symlinkSync('handed', join(copies, '01932f4c-7c00-7000-8000-000000000002'))
  const asked: string[] = []
  const wanted = ['wanted', 'taker']
  await folders.sweep((runId) => {
    asked.push(runId)
    return Promise.resolve(wanted.includes(runId))
  })
  const left = readdirSync(copies).sort()
  assert.deepEqual(left, [`.new-wanted-${uuid}`, 'README', 'handed', 'wanted'].sort())
  assert.deepEqual([...new Set(asked)].sort(), ['gone', 'lost', 'taker', 'wanted'])
  assert.ok((await folders.find('taker')) !== null)
  // No other process makes copies for a store that only one opens.
  await place.isolate('making', {
    fill: async () => {
      const making = readdirSync(copies).find((name) => name.startsWith('.new-making-'))!
      await place.folders.sweep((runId) => Promise.resolve(wanted.includes(runId)))
      assert.deepEqual(readdirSync(copies).sort(), [making, 'README', 'handed', 'wanted'].sort())
      return []
    },
  })
})

test('stores with other data folders leave each other\'s copies alone', async (t) => {
  const place = project(t)
  const [one, other] = ['one', 'other'].map((name) =>
    place.foldersWith({ dataFolder: join(place.top, name) }),
  ) as [IsolatedFolders, IsolatedFolders]
  const inUse = await one.create('run1', place.cwd, { mounts: false })
  await other.create('run2', place.cwd, { mounts: false })
  const uuid = '11111111-1111-1111-1111-111111111111'
  const making = `.new-mark.run3-${uuid}`
  mkdirSync(join(place.copies, making))
  const none = (): Promise<boolean> => Promise.resolve(false)
  await place.folders.sweep(none)
  await other.sweep(none)
  assert.deepEqual(readdirSync(place.copies).sort(), [making, 'run1'])
  assert.ok(existsSync(inUse.root))
  await one.sweep(none)
  assert.deepEqual(readdirSync(place.copies), [making])
})

test('a copy is used as long as the machine runs, and only where its mounts can be', async (t) => {
  const place = project(t)
  const files = Array.from({ length: 250 }, (_, i) => [`node_modules/p${i}/index.js`, `${i}`])
  place.write(Object.fromEntries(files))
  const { folders } = place
  assert.equal(await folders.usable('run1', false), null)
  const mounted = await place.isolate('run1', { mounts: true })
  assert.equal(mounted.readOnly.length, 1)
  assert.equal((await folders.usable('run1', true))?.root, mounted.root)
  assert.equal(await folders.usable('run1', false), null)
  const copied = await place.isolate('run2')
  assert.equal((await folders.usable('run2', false))?.root, copied.root)
  assert.equal((await folders.usable('run2', true))?.root, copied.root)
  const description = join(place.copies, 'run2', 'copy.json')
  const { boot, ...earlier } = JSON.parse(readFileSync(description, 'utf8')) as { boot: string }
  assert.equal(boot, readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))
  for (const text of [JSON.stringify({ ...earlier, boot: 'x' }), JSON.stringify(earlier), '']) {
    writeFileSync(description, text)
    assert.equal(await folders.usable('run2', false), null)
    const { root } = await place.isolate('run2')
    assert.equal((await folders.usable('run2', false))?.root, root)
  }
})

test('what is too large leaves nothing, and so does what fails or is aborted', async (t) => {
  const place = project(t)
  const small = place.foldersWith({ maxBytes: 500 })
  await assert.rejects(small.create('run1', place.cwd, { mounts: false }), WorkspaceTooLargeError)
  const gone = join(place.top, 'gone')
  await assert.rejects(place.folders.create('run1', gone, { mounts: false }), WorkspaceError)
  const reason = new Error('stop')
  const stop = new AbortController()
  const fill = (): Promise<never> => {
    stop.abort(reason)
    return Promise.reject(reason)
  }
  await assert.rejects(place.isolate('run1', { fill, signal: stop.signal }), reason)
  assert.deepEqual(readdirSync(place.copies), [])
})

test('a copy is filled before it can be found', async (t) => {
  const place = project(t)
  const { root, notes } = await place.isolate('run1', {
    fill: async (path) => {
      assert.equal(await place.folders.find('run1'), null)
      writeFileSync(join(path, 'a.txt'), 'filled')
      return ['Filled.']
    },
  })
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'filled')
  assert.deepEqual(notes, ['Filled.'])
})

test('copies below a project are reported, since programs look in the folders above', async (t) => {
  const place = project(t)
  writeFileSync(join(place.top, 'pyproject.toml'), '')
  const { notes } = await place.isolate()
  assert.equal(notes.length, 1)
  assert.match(notes[0]!, /^Programs that look in the folders above find .*\/pyproject\.toml there/)
  assert.deepEqual((await place.isolate('sandboxed', { mounts: true })).notes, [])
})

test('for tools in a copy, the folder that it lies in is open and every other one closed', async (t) => {
  const place = project(t)
  const { root } = await place.isolate()
  const data = join(place.top, 'data')
  const inside = join(root, 'b')
  assert.deepEqual(await closedInCopy(root, [data, inside, '/elsewhere']), [inside, '/elsewhere'])
})

test('two processes that remove and sweep at once do not disturb each other', async (t) => {
  const place = project(t)
  for (let i = 0; i < 5; i++) await place.isolate(`run${i}`)
  const sweep = (): Promise<void> => place.folders.sweep(() => Promise.resolve(false))
  const removals = Array.from({ length: 5 }, (_, i) => place.folders.remove(`run${i}`))
  await Promise.all([sweep(), ...removals, sweep()])
  await sweep()
  assert.deepEqual(readdirSync(place.copies), [])
})
