import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'node:test'
import { manifestOf } from '../../../lib/agent/workspace/tracked-folder.js'
import { readContent, readFolder, readTree } from '../../../lib/agent/workspace/read-tree.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { EditedFolder } from './edited-folder.js'
import { Captures, byReason, watched, playEdits, sum } from './captures.js'

test('what is captured while a folder is edited at random is what the model holds', async (t) => {
  await playEdits(t, Number(process.env['SEED'] ?? Date.now() % 1_000_000), 6)
})

test('equal folders have equal checkpoints, and an unchanged one stores nothing', async (t) => {
  const [one, other] = [new Captures(t), new Captures(t)]
  for (const captures of [one, other]) {
    for (const path of ['b/c/d.txt', 'a', 'b.txt']) captures.write(path)
  }
  const first = await one.capture()
  assert.equal((await other.capture()).checkpoint_id, first.checkpoint_id)
  assert.equal(first.new_bytes, sum(['b/c/d.txt', 'a', 'b.txt'].map(({ length }) => length)))
  const calls: string[] = []
  const objects = watched(one.objects, (call) => void calls.push(call))
  assert.deepEqual(await one.capture(objects), { ...first, new_bytes: 0 })
  assert.deepEqual(calls, [])
  one.write('b/e')
  fs.rmSync(join(one.root, 'b/e'))
  assert.equal((await one.capture()).checkpoint_id, first.checkpoint_id)
})

test('folders are part of a tree by their permissions, also without files', async (t) => {
  const captures = new Captures(t)
  captures.write('a/b')
  captures.write('secrets/.env')
  fs.mkdirSync(join(captures.root, 'node_modules/m'), { recursive: true })
  const ids = [(await captures.capture()).checkpoint_id]
  const edits = [
    () => fs.mkdirSync(join(captures.root, 'empty/folder'), { recursive: true }),
    () => fs.chmodSync(join(captures.root, 'empty/folder'), 0o700),
    () => fs.chmodSync(join(captures.root, 'a'), 0o750),
  ]
  for (const edit of edits) {
    edit()
    ids.push((await captures.capture()).checkpoint_id)
    await captures.restart()
    assert.equal((await captures.capture()).checkpoint_id, ids.at(-1))
  }
  assert.equal(new Set(ids).size, 4)
  const { folders } = await readTree(captures.objects, captures.previous!)
  const shown = [...folders!].map(([path, mode]) => `${path} ${mode.toString(8)}`)
  assert.deepEqual(shown, ['a 750', 'empty 755', 'empty/folder 700', 'secrets 755'])
  fs.chmodSync(join(captures.root, 'a'), 0o755)
  fs.rmSync(join(captures.root, 'empty'), { recursive: true })
  assert.equal((await captures.capture()).checkpoint_id, ids[0])
})

test('a folder that is left out as a whole is none of the tree', async (t) => {
  const closed = 'data'
  const captures = new Captures(t, { closed: [join(scratch(t), 'elsewhere')] })
  for (const path of ['repo/HEAD', 'repo/objects/x', 'repo/refs/x', `${closed}/x`, 'a/b']) {
    captures.write(path)
  }
  await captures.capture()
  const { folders } = await readTree(captures.objects, captures.previous!)
  assert.deepEqual([...folders!.keys()], ['a', 'data'])
  const tree = await manifestOf(captures.root, { closed: [join(captures.root, closed)] })
  assert.deepEqual([...tree.folders!.keys()], ['a'])
})

test('a file with several names is named, and makes no other tree', async (t) => {
  const captures = new Captures(t)
  for (const path of ['a', 'b/c']) captures.write(path)
  const first = await captures.capture()
  fs.linkSync(join(captures.root, 'a'), join(scratch(t), 'elsewhere'))
  fs.linkSync(join(captures.root, 'b/c'), join(captures.root, '.env'))
  for (const restarts of [false, false, true]) {
    if (restarts) await captures.restart()
    const { checkpoint_id, left_out } = await captures.capture()
    assert.equal(checkpoint_id === first.checkpoint_id, false, 'the .env is left out')
    assert.deepEqual(byReason(left_out)['hard_link'], ['a', 'b/c'])
  }
  assert.equal((await captures.leftOut())['hard_link'], undefined)
})

test('an edit stores its file and the folders above it, and nothing else', async (t) => {
  const captures = new Captures(t)
  for (let i = 0; i < 50; i++) captures.write(`folder${i % 5}/sub/file${i}`)
  await captures.capture()
  const stored: string[] = []
  captures.write('folder3/sub/file3', 'changed')
  const { new_bytes } = await captures.capture(
    watched(captures.objects, (call, hashes) => void (call === 'put' && stored.push(...hashes))),
  )
  assert.equal(new_bytes, 'changed'.length)
  assert.equal(stored.length, 4)
  assert.equal(stored[0], hash('sha256', 'changed'))
  assert.equal(stored[3], captures.previous)
})

test('the folder may be given by a descriptor, and be renamed', async (t) => {
  const captures = new Captures(t)
  captures.write('a/b')
  const { checkpoint_id } = await captures.capture()
  const fd = fs.openSync(captures.root, fs.constants.O_DIRECTORY)
  t.after(() => fs.closeSync(fd))
  fs.renameSync(captures.root, `${captures.root}-moved`)
  t.after(() => fs.rmSync(`${captures.root}-moved`, { recursive: true }))
  const { entries } = await manifestOf(`/proc/self/fd/${fd}`)
  assert.deepEqual(entries, (await readTree(captures.objects, checkpoint_id)).entries)
})

test('what is no work of the run, or cannot be stored, is passed over or left out and named', async (t) => {
  const neverStore = ['*.sqlite', 'data/**', '!data/ok']
  const captures = new Captures(t, { fileBytes: 1_000, neverStore })
  for (const path of [
    'node_modules/x', 'a/.git/config', '.GIT/x', 'a/.venv/x', '.runwright-0123456789abcdef.tmp',
    'kept', 'a/kept', 'data/ok', 'data/x', 'deep/db.sqlite', '.env', '.env.local', 'a/.envrc',
    '.npmrc', 'a/ID_RSA', 'id_rsa.pub', 'server.PEM', '.ssh/config', 'keys/key.p12',
  ]) captures.write(path)
  for (const name of ['HEAD', 'objects/x', 'refs/x', 'secret']) captures.write(`mirror/${name}`)
  captures.write('key', '-----BEGIN OPENSSH PRIVATE KEY-----\nabc')
  captures.write('text-of-a-key', 'see -----BEGIN OPENSSH PRIVATE KEY-----\nabc')
  captures.write('large', 'x'.repeat(1_001))
  captures.write('largest', 'x'.repeat(1_000))
  execFileSync('mkfifo', [join(captures.root, 'a/pipe')])
  const expected = {
    kind: ['a/pipe', 'mirror'],
    secret: [
      '.env', '.env.local', '.npmrc', '.ssh', 'a/.envrc', 'a/ID_RSA', 'data/x', 'deep/db.sqlite',
      'key', 'keys/key.p12', 'server.PEM',
    ],
    size: ['large'],
  }
  const { left_out } = await captures.capture()
  const passed_over = ['.GIT', 'a/.git', 'a/.venv', 'node_modules']
  assert.deepEqual(byReason(left_out), { ...expected, passed_over })
  assert.deepEqual(await captures.leftOut(), expected)
  const paths = ['a/kept', 'data/ok', 'id_rsa.pub', 'kept', 'largest', 'text-of-a-key']
  assert.deepEqual(await captures.paths(), paths)
  // Also when nothing has changed since.
  assert.deepEqual((await captures.capture()).left_out, left_out)
})

test('a host may let secrets be stored', async (t) => {
  const captures = new Captures(t, { storeSecretFiles: true, neverStore: ['x'] })
  for (const path of ['.env', 'x', 'id_rsa']) captures.write(path, '-----BEGIN PRIVATE KEY-----')
  await captures.capture()
  assert.deepEqual(await captures.paths(), ['.env', 'id_rsa', 'x'])
})

test('a file that becomes a secret, too large or unreadable leaves the tree, and comes back', async (t) => {
  const captures = new Captures(t, { fileBytes: 100 })
  captures.write('a', 'text')
  captures.write('b')
  const { checkpoint_id } = await captures.capture()
  for (const [content, reason] of [
    ['-----BEGIN RSA PRIVATE KEY-----', 'secret'],
    ['x'.repeat(101), 'size'],
  ] as const) {
    captures.write('a', content)
    assert.deepEqual(byReason((await captures.capture()).left_out), { [reason]: ['a'] })
    assert.deepEqual(await captures.paths(), ['b'])
  }
  captures.write('a', 'text')
  assert.equal((await captures.capture()).checkpoint_id, checkpoint_id)
})

test('closed folders do not exist, and are not named', async (t) => {
  const root = scratch(t)
  const closed = [join(root, 'data'), join(root, 'a/b'), join(root, '.cache'), '/elsewhere']
  const captures = new Captures(t, { closed }, root)
  for (const path of ['data/journal', 'a/b/c', 'a/c', '.cache/x', 'database']) captures.write(path)
  assert.deepEqual((await captures.capture()).left_out, [])
  assert.deepEqual(await captures.paths(), ['a/c', 'database'])
  const inside = new Captures(t, { closed: [root] }, join(root, 'a'))
  await inside.capture()
  assert.deepEqual(await inside.paths(), [])
})

test('a folder with too many entries is captured from the top', async (t) => {
  const captures = new Captures(t, { entries: 5 })
  for (const path of ['z', 'y', 'a/b/c', 'a/c', 'deep/er/x']) captures.write(path)
  const { left_out } = await captures.capture()
  assert.deepEqual(await captures.paths(), ['y', 'z'])
  assert.deepEqual(left_out, [{ reason: 'count', count: 3, paths: ['a/c', 'a/b', 'deep'].sort() }])
})

test('folders in folders are captured as deep as tools go', async (t) => {
  const captures = new Captures(t)
  captures.write(`${'d/'.repeat(64)}x`)
  captures.write(`${'e/'.repeat(65)}x`)
  const { left_out } = await captures.capture()
  assert.deepEqual(await captures.paths(), [`${'d/'.repeat(64)}x`])
  assert.deepEqual(byReason(left_out), { count: ['e/'.repeat(65).slice(0, -1)] })
})

test('beyond the share of a run, the smallest files are stored, and what changed since', async (t) => {
  const captures = new Captures(t, { budgetBytes: 100 })
  captures.write('large', 'l'.repeat(90))
  captures.write('same', 's'.repeat(40))
  captures.write('same-again', 's'.repeat(40))
  captures.write('small', 'x'.repeat(50))
  const first = await captures.capture()
  assert.deepEqual(await captures.paths(), ['large*', 'same', 'same-again', 'small'])
  assert.deepEqual(first.left_out, [{ reason: 'budget', count: 1, paths: ['large'] }])
  assert.equal(first.new_bytes, 90)
  const tree = await readTree(captures.objects, first.checkpoint_id)
  await assert.rejects(readContent(captures.objects, tree.entries.get('large')!, 'large'), {
    name: 'CheckpointError', problem: 'not_kept', paths: ['large'],
  })
  // Not stored later either, as long as it is what it was.
  fs.utimesSync(join(captures.root, 'large'), 1, 1)
  assert.equal((await captures.capture()).checkpoint_id, first.checkpoint_id)
  await captures.restart()
  assert.equal((await captures.capture()).checkpoint_id, first.checkpoint_id)
  captures.write('large', 'L'.repeat(91))
  captures.write('new', 'n'.repeat(100))
  await captures.capture()
  assert.deepEqual(await captures.paths(), ['large', 'new', 'same', 'same-again', 'small'])
  // Four times the share is the end of it.
  captures.write('more', 'm'.repeat(99))
  captures.write('most', 'M'.repeat(98))
  const { left_out } = await captures.capture()
  assert.deepEqual(await captures.paths(), [
    'large', 'more', 'most*', 'new', 'same', 'same-again', 'small',
  ])
  assert.deepEqual(byReason(left_out), { budget: ['most'] })
})

test('a checkpoint that never became durable is stored again', async (t) => {
  const captures = new Captures(t)
  captures.write('a')
  const first = await captures.capture()
  captures.write('b')
  await captures.capture()
  // Its event was lost, and what only it had is gone.
  captures.previous = first.checkpoint_id
  await captures.objects.delete([hash('sha256', 'b')], 0)
  await captures.capture()
  const { entries } = await readTree(captures.objects, captures.previous!)
  for (const path of ['a', 'b']) {
    const content = await readContent(captures.objects, entries.get(path)!)
    assert.equal(Buffer.from(content).toString(), path)
  }
})

test('an object is stored after everything that it refers to', async (t) => {
  const captures = new Captures(t)
  const folder = new EditedFolder(captures.root, new Random(11))
  for (let i = 0; i < 300; i++) folder.edit()
  const puts = new Map<string, number>()
  let order = 0
  const objects = watched(captures.objects, async (call, hashes) => {
    if (call !== 'put') return
    // Nothing counts as stored before that.
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    for (const one of hashes) puts.set(one, order++)
  })
  const { checkpoint_id } = await captures.capture(objects)
  let references = 0
  const check = async (id: string, isTop: boolean): Promise<void> => {
    for (const { kind, sha256 } of (await readFolder(captures.objects, id, isTop)).entries) {
      assert.ok(puts.get(sha256)! < puts.get(id)!)
      references += 1
      if (kind === 'folder') await check(sha256, false)
    }
  }
  await check(checkpoint_id, true)
  assert.ok(references > 20)
})

test('a capture that is aborted ends, with the reason; the folder is not used after that', async (t) => {
  const captures = new Captures(t)
  for (let i = 0; i < 20; i++) captures.write(`file${i}`)
  const reason = new Error('enough')
  await assert.rejects(captures.capture(captures.objects, AbortSignal.abort(reason)), reason)
  const stop = new AbortController()
  // The store never answers.
  const objects = watched(captures.objects, () => {
    stop.abort(reason)
    return new Promise(() => undefined)
  })
  await assert.rejects(captures.capture(objects, stop.signal), reason)
  await captures.capture()
  assert.equal((await captures.paths()).length, 20)
})

test('a folder that cannot be entered is an error, whatever is in a folder is none', async (t) => {
  const captures = new Captures(t)
  const gone = new Captures(t, {}, join(captures.root, 'nowhere'))
  await assert.rejects(gone.capture(), { code: 'ERR_AGENT_WORKSPACE' })
  captures.write('file')
  const file = new Captures(t, {}, join(captures.root, 'file'))
  await assert.rejects(file.capture(), { code: 'ERR_AGENT_WORKSPACE' })
  if (process.getuid?.() === 0) return
  captures.write('locked/file')
  captures.write('unreadable')
  fs.chmodSync(join(captures.root, 'locked'), 0)
  fs.chmodSync(join(captures.root, 'unreadable'), 0)
  t.after(() => fs.chmodSync(join(captures.root, 'locked'), 0o755))
  const { left_out } = await captures.capture()
  assert.deepEqual(byReason(left_out), { unreadable: ['locked', 'unreadable'] })
})
