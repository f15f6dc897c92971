/** Steps on a disk on which case is ignored. Replaces functions of node:fs, so it runs alone. */
import assert from 'node:assert/strict'
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, dirname } from 'node:path'
import { test, type TestContext } from 'node:test'
import { applySteps } from '../../../lib/agent/workspace/apply.js'
import { contentsOf, file } from '../../helpers/tree-model.js'
import { Disk, filesOf, steps } from './work-folders.js'

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>

const plain = (name: string): string => name.normalize('NFC').toLowerCase()

/** The path to what is there, whatever its case. */
function folded(path: unknown): unknown {
  if (typeof path !== 'string' || /^\/proc\/self\/fd\/\d+(?:\/\.)?$/.test(path)) return path
  const folder = dirname(path)
  const found = readdirSync(folder).find((name) => plain(name) === plain(basename(path)))
  return found === undefined ? path : `${folder}/${found}`
}

function sameFile(a: string, b: string): boolean {
  return lstatSync(a, { throwIfNoEntry: false })?.ino === lstatSync(b).ino
}

/** Ignores case in the calls of this process until the test ends. */
function foldCase(t: TestContext): void {
  const functions = promises as unknown as Record<string, AnyFunction>
  const names = ['link', 'lstat', 'mkdir', 'open', 'readlink', 'rename', 'rmdir', 'symlink', 'unlink']
  const originals = names.map((name) => functions[name]!)
  names.forEach((name, i) => {
    functions[name] = async function (from, to, ...rest) {
      if (name === 'symlink') return await originals[i]!.call(this, from, folded(to), ...rest)
      if (name !== 'rename' && name !== 'link') {
        return await originals[i]!.call(this, folded(from), to, ...rest)
      }
      const [source, target] = [String(folded(from)), String(folded(to))]
      const isCase = name === 'rename' && plain(basename(source)) === plain(basename(target))
      const isOwn = isCase && sameFile(source, target)
      return await originals[i]!.call(this, source, isOwn ? to : target, ...rest)
    }
  })
  syncBuiltinESMExports()
  t.after(() => {
    names.forEach((name, i) => (functions[name] = originals[i]!))
    syncBuiltinESMExports()
  })
}

for (const [what, before, after] of [
  ['a file', { Read: file('x') }, { READ: file('x') }],
  ['a file with other content', { 'sub/Read': file('x') }, { 'sub/read': file('y') }],
  ['a file in other Unicode', { '\u00fc': file('x') }, { 'u\u0308': file('x') }],
  ['a folder', { 'Sub/a': file('x'), 'Sub/b': file('x') }, { 'sub/a': file('x'), 'sub/b': file('y') }],
  ['folders in folders', { 'A/B/c': file('x'), 'A/d': file('x') }, { 'a/b/c': file('x'), 'a/d': file('x') }],
] as const) {
  test(`${what} gets a name of another case, and back`, async (t) => {
    using disk = new Disk(filesOf(before))
    foldCase(t)
    const [old, wanted] = [filesOf(before), filesOf(after)]
    const forth = await applySteps(disk.folder, steps(old, wanted), contentsOf(old, wanted))
    disk.check(wanted, readlinkSync('/proc/self/cwd'))
    assert.deepEqual(forth.skipped, [])
    await applySteps(disk.folder, steps(wanted, old), contentsOf(old, wanted))
    disk.check(old, 'back')
  })
}
