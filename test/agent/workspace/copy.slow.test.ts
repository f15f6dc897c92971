import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { WorkspaceTooLargeError } from '../../../lib/agent/errors.js'
import { removeFolder } from '../../../lib/agent/workspace/copy.js'
import { removeTree } from '../../../lib/agent/workspace/remove-tree.js'
import type { CopyJob } from '../../../lib/agent/workspace/tree-copy.js'
import { TreeCopy } from '../../../lib/agent/workspace/tree-copy.js'
import { Random } from '../../helpers/random.js'
import { wholeTree } from '../../helpers/whole-tree.js'
import { Place, asOrdinaryUser } from './copied-place.js'

test('a copy has everything: kinds, contents, permissions, times, names in any encoding', async (t) => {
  for (let seed = 1; seed <= 12; seed++) {
    const place = new Place(t)
    plant(place.from, new Random(seed))
    const { files, notes } = await place.copy()
    assert.deepEqual(wholeTree(place.to), wholeTree(place.from), `seed ${seed}`)
    assert.deepEqual(notes, [], `seed ${seed}`)
    const entries = Object.values(wholeTree(place.from))
    assert.equal(files, entries.filter((line) => !line.startsWith('folder')).length)
  }
})

/** Fills a folder with what may be in one. */
function plant(root: string, random: Random): void {
  const folders = [Buffer.from(root)]
  const files: Buffer[] = []
  const names = ['a', 'b c', 'ünï', '.env', 'x\ny', '-f', '%', '"', 'node_modules', '.git', 'venv']
  const at = (folder: Buffer, i: number): Buffer<ArrayBuffer> => {
    const name = random.chance(0.2)
      ? Buffer.from([0x61 + random.integer(0, 20), 0x80 + random.integer(0, 127), 0xff])
      : Buffer.from(random.pick(names))
    return Buffer.concat([folder, Buffer.from('/'), name, Buffer.from(String(i))])
  }
  for (let i = 0; i < 60; i++) {
    const path = at(random.pick(folders), i)
    switch (random.integer(0, 5)) {
      case 0:
        mkdirSync(path)
        folders.push(path)
        break
      case 1: {
        // From the top, these would lead out.
        const isTop = path.lastIndexOf('/') === root.length
        symlinkSync(random.pick(['a', '.', './b c', ...(isTop ? [] : ['..', '../x'])]), path)
        lutimesSync(path, 1, random.integer(0, 2e9))
        break
      }
      case 2:
        if (files.length > 0) linkSync(random.pick(files), path)
        break
      default: {
        const size = random.pick([0, 1, 100, 65_536, 262_144, 262_145, 1_500_000])
        writeFileSync(path, Buffer.alloc(size, random.integer(1, 255)))
        chmodSync(path, random.pick([0o644, 0o755, 0o600, 0o444, 0o400, 0o000, 0o777]))
        // Halves of seconds have no rounding.
        utimesSync(path, 5, random.integer(0, 2e9) + 0.5)
        files.push(path)
      }
    }
  }
  for (const folder of folders.toReversed()) {
    chmodSync(folder, random.pick([0o755, 0o700, 0o555, 0o1777]))
    utimesSync(folder, 5, random.integer(0, 2e9))
  }
}

test('times are those of the original to two microseconds', async (t) => {
  const place = new Place(t)
  for (let i = 0; i < 50; i++) place.write(`f${i}`)
  await place.copy()
  for (const name of ['', ...readdirSync(place.from)]) {
    const [before, after] = [place.from, place.to].map(
      (root) => statSync(join(root, name), { bigint: true }).mtimeNs,
    )
    const difference = before! - after!
    assert.ok(difference > -2_000n && difference < 2_000n, `${name}: ${difference} ns`)
  }
})

test('holes stay holes', async (t) => {
  const place = new Place(t)
  place.write('sparse', 'begin')
  truncateSync(join(place.from, 'sparse'), 64 * 1024 * 1024)
  writeFileSync(join(place.from, 'sparse'), 'end', { flag: 'a' })
  // Whole seconds have no rounding.
  for (const path of ['sparse', '.']) utimesSync(join(place.from, path), 5, 5)
  await place.copy()
  assert.deepEqual(wholeTree(place.to), wholeTree(place.from))
  assert.ok(statSync(join(place.to, 'sparse')).blocks * 512 < 1024 * 1024)
})

test('a copy beyond the limit is refused, and nothing is left of it', async (t) => {
  const place = new Place(t)
  place.write('deep/node_modules/x/a', Buffer.alloc(700_000))
  place.write('deep/b', Buffer.alloc(700_000))
  await assert.rejects(place.copy({ maxBytes: 1_000_000 }), WorkspaceTooLargeError)
  assert.deepEqual(readdirSync(join(place.to, '..')), [])
  linkSync(join(place.from, 'deep/b'), join(place.from, 'deep/c'))
  const { bytes } = await place.copy({ maxBytes: 1_500_000 })
  assert.equal(bytes, 1_400_000 + 6 * 256, 'one file with two names counts once')
})

test('an aborted copy rejects with the reason, and nothing is left of it', async (t) => {
  const place = new Place(t)
  for (let i = 0; i < 200; i++) place.write(`f${i}/x`)
  const reason = new Error('enough')
  await assert.rejects(place.copy({ signal: AbortSignal.abort(reason) }), reason)
  const stop = new AbortController()
  const copying = place.copy({ signal: stop.signal })
  stop.abort(reason)
  await assert.rejects(copying, reason)
  assert.deepEqual(readdirSync(join(place.to, '..')), [])
})

test('a program in a copy gets from no link into the original', async (t) => {
  const place = new Place(t)
  const random = new Random(7)
  symlinkSync('original', join(place.top, 'alias'))
  const folders = ['', 'a', 'a/b', 'a/b/c', 'd']
  for (const folder of folders) place.write(join(folder, 'file'), 'original')
  const parts = ['..', 'a', 'b', 'c', 'd', 'original', 'alias', 'file', 'l0', 'l1', 'l2', 'l3']
  for (let i = 0; i < 120; i++) {
    const words = Array.from({ length: random.integer(1, 5) }, () => random.pick(parts))
    const start = random.pick(['', '', `${place.from}/`, `${place.top}/alias/`, `${place.top}/`])
    place.link(join(random.pick(folders), `l${i}`), start + words.join('/'))
  }
  await place.copy()
  for (const folder of folders) {
    for (const name of readdirSync(join(place.from, folder))) {
      const [before, after] = [place.from, place.to].map((root) => {
        try {
          return realpathSync(join(root, folder, name))
        } catch {
          return null
        }
      })
      // What leads nowhere may lead to what is there in the copy, where a way is shorter.
      if (before === null) {
        assert.ok(!`${after}/`.startsWith(`${place.from}/`), join(folder, name))
        continue
      }
      const leadsIn = before != null && `${before}/`.startsWith(`${place.from}/`)
      const expected = leadsIn ? place.to + before.slice(place.from.length) : before
      assert.equal(after, expected, join(folder, name))
    }
  }
})

test('a file that goes on changing is copied, and named', (t) => {
  const place = new Place(t)
  const log = join(place.from, 'log')
  place.write('log', Buffer.alloc(8_000_000, 'x'))
  const job: CopyJob = {
    from: place.from, to: place.to, copies: [{ from: place.from, to: place.to }],
    closed: [], maxBytes: Infinity, mounts: false,
  }
  // Asked for at every part of a large file.
  const isAborted = (): boolean => {
    appendFileSync(log, 'y')
    return false
  }
  const { notes } = new TreeCopy(job, isAborted).run()
  assert.deepEqual(notes, ['These files were being changed while they were copied: log.'])
  assert.ok(statSync(join(place.to, 'log')).size >= 8_000_000)
})

test('a folder of any depth, without permissions, and with links is removed', async (t) => {
  const place = new Place(t)
  mkdirSync(join(place.top, 'beside'))
  writeFileSync(join(place.top, 'beside/kept'), '')
  place.link('l', '../beside')
  place.write('locked/x/y', '', 0o000)
  chmodSync(join(place.from, 'locked/x'), 0o000)
  chmodSync(join(place.from, 'locked'), 0o500)
  const made = spawnSync('sh', ['-c', `i=0; while [ $i -lt 100 ]; do
    mkdir ${'d'.repeat(100)} && cd -P ${'d'.repeat(100)} || exit 1; i=$((i+1)); done; : > end`], {
    cwd: place.from,
  })
  if (made.status !== 0) t.diagnostic(String(made.stderr))
  asOrdinaryUser(place, () => removeTree(place.from))
  assert.ok(!existsSync(place.from))
  assert.deepEqual(readdirSync(join(place.top, 'beside')), ['kept'])
  await removeFolder(place.from)
})
