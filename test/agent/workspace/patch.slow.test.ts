import { atOnce } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { netChanges, type TreeChange } from '../../../lib/agent/workspace/net-changes.js'
import { patchOf } from '../../../lib/agent/workspace/patch.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf, file, link, listing, randomEdits, randomModel, readModel, treeOf, writeModel,
  type Model, type ModelFile,
} from '../../helpers/tree-model.js'

const GIT_ENV = {
  PATH: process.env['PATH'],
  GIT_CONFIG_NOSYSTEM: '1',
  HOME: '/nonexistent',
  GIT_CEILING_DIRECTORIES: tmpdir(),
}

/** Programs that apply patches. */
const PROGRAMS = {
  git: ['git', 'apply', '-p1', '--whitespace=nowarn'],
  patch: ['patch', '-p1', '-f', '-s'],
} as const

/** True when one of both has a file where the other one has a folder, which patch cannot change. */
function collides(before: Model, after: Model): boolean {
  const [a, b] = [[...before.keys()], [...after.keys()]]
  const isBelow = (above: string[], below: string[]): boolean =>
    above.some((folder) => below.some((path) => path.startsWith(`${folder}/`)))
  return isBelow(a, b) || isBelow(b, a)
}

function isMissing(program: string): boolean {
  return spawnSync(program, ['--version']).error !== undefined
}

/** Applies the patch with a program, and compares the folder with what it should be. */
async function check(
  program: keyof typeof PROGRAMS,
  before: Model,
  after: Model,
  hint: string,
  changes: readonly TreeChange[] = atOnce(netChanges(treeOf(before), treeOf(after))),
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'patch-'))
  try {
    writeModel(folder, before)
    const input = await patchOf(changes, contentsOf(before, after))
    const [command, ...args] = PROGRAMS[program]
    if (input.length > 0) {
      const options = { cwd: folder, input, env: GIT_ENV }
      const { status, stdout, stderr } = spawnSync(command!, args, options)
      const why = `${hint} ${program}\n${stdout}${stderr}\n${input.toString('latin1')}`
      assert.equal(status, 0, why)
      assert.deepEqual(listing(readModel(folder)), listing(after), why)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const lines = (count: number): string => Array.from({ length: count }, (_, i) => `${i}\n`).join('')
const binary = Buffer.from([0, 1, 2, 255, 10, 0, 13, 10])

/** 400 000 bytes of every value. */
function noise(seed: number): Buffer {
  const random = new Random(seed)
  return Buffer.from(Array.from({ length: 400_000 }, () => random.integer(0, 255)))
}

type Files = Readonly<Record<string, ModelFile>>

const CASES: Readonly<Record<string, readonly [before: Files, after: Files]>> = {
  'changed lines': [{ a: file(lines(40)) }, { a: file(lines(40).replace('7\n', 'seven\n')) }],
  'a new file in new folders': [{}, { 'a/b/c': file('x\n') }],
  'a deleted file': [{ a: file('x\n'), b: file('y') }, { b: file('y') }],
  'new and deleted empty files': [{ a: file(''), k: file('k') }, { b: file('', 0o755), k: file('k') }],
  'a new empty file': [{ k: file('k') }, { k: file('k'), 'b c': file('') }],
  'a deleted empty file': [{ k: file('k'), 'b c': file('') }, { k: file('k') }],
  'a renamed file': [{ 'a/x': file('x\ny\n') }, { 'b/x': file('x\ny\n') }],
  'a renamed file with another mode': [{ 'a b': file('x\n') }, { 'b "c"': file('x\n', 0o755) }],
  'a mode': [{ 'a b': file('x\n') }, { 'a b': file('x\n', 0o755) }],
  'a mode and content': [{ a: file('x\n', 0o755) }, { a: file('y\n') }],
  'no newline before': [{ a: file('x') }, { a: file('x\n') }],
  'no newline after': [{ a: file('x\n') }, { a: file('x') }],
  'CRLF': [{ a: file('x\r\ny\r\n') }, { a: file('x\r\nz\r\n') }],
  'CRLF becomes LF': [{ a: file('x\r\ny\r\n') }, { a: file('x\ny\n') }],
  'Latin-1': [{ a: file(Buffer.from('caf\xe9\n', 'latin1')) }, { a: file(Buffer.from('th\xe9\n', 'latin1')) }],
  'new binary content': [{}, { a: file(binary) }],
  'changed binary content': [{ a: file(binary) }, { a: file(Buffer.concat([binary, binary])) }],
  'text becomes binary': [{ a: file('x\n') }, { a: file(binary, 0o755) }],
  'deleted binary content': [{ a: file(binary), b: file('') }, { b: file('') }],
  'a new link': [{ a: file('x') }, { a: file('x'), l: link('a') }],
  'another target': [{ l: link('a') }, { l: link('somewhere/else') }],
  'a deleted link': [{ l: link('a'), b: file('') }, { b: file('') }],
  'a file becomes a link': [{ a: file('x\n') }, { a: link('x\n') }],
  'a link becomes a file': [{ a: link('x') }, { a: file('x\n', 0o755) }],
  'a renamed binary file': [{ a: file(binary) }, { 'b/c': file(binary, 0o755) }],
  'a large binary file': [{ a: file(noise(1)) }, { a: file(Buffer.concat([noise(1), noise(2)])) }],
  'a renamed link': [{ a: link('x') }, { b: link('x') }],
  'a file becomes a folder': [{ a: file('x\n') }, { 'a/b': file('y\n') }],
  'a folder becomes a file': [{ 'a/b/c': file('x\n') }, { a: file('y\n') }],
  'a file moves below its own name': [{ a: file('x\ny\n') }, { 'a/a': file('x\ny\n') }],
  'a file takes the name of its folder': [{ 'a/a': file('x\ny\n') }, { a: file('x\ny\n') }],
  'two files that change places': [{ a: file('x\n'), b: file('y\n') }, { a: file('y\n'), b: file('x\n') }],
  'lines like headers': [{ a: file('-- a/x\n++ b/x\n') }, { a: file('-- a/y\n@@ -1 +1 @@\ndiff --git a b\n') }],
  'names with every byte': [
    { 'a b': file('x\n'), 'c\td': file('x\n'), 'e"f\\g': file('x\n') },
    { 'a b': file('y\n'), 'c\td': file('y\n'), 'e"f\\g': file('y\n'), '\udcffx\n': file('z\n'), 'ä€😀': file('w') },
  ],
}

/** All cases at once, each in a folder of its own, and compared for itself. */
function allCases(program: keyof typeof PROGRAMS, isBack: boolean) {
  const [before, after] = [new Map<string, ModelFile>(), new Map<string, ModelFile>()]
  const changes: TreeChange[] = []
  for (const [name, pair] of Object.entries(CASES)) {
    const inFolder = (files: Files): Model =>
      new Map(Object.entries(files).map(([path, it]) => [`${name}/${path}`, it]))
    const [old, now] = [inFolder(pair[isBack ? 1 : 0]), inFolder(pair[isBack ? 0 : 1])]
    if (program === 'patch' && collides(old, now)) continue
    for (const [path, it] of old) before.set(path, it)
    for (const [path, it] of now) after.set(path, it)
    changes.push(...atOnce(netChanges(treeOf(old), treeOf(now))))
  }
  return { before, after, changes }
}

for (const program of ['git', 'patch'] as const) {
  const skip = isMissing(program)
  test(`${program} applies a patch with every kind of change`, { skip }, async () => {
    for (const isBack of [false, true]) {
      const { before, after, changes } = allCases(program, isBack)
      await check(program, before, after, isBack ? 'back:' : 'forth:', changes)
    }
  })
}

for (const program of ['git', 'patch'] as const) {
  const skip = isMissing(program)
  test(`${program} applies patches of 250 random changes`, { skip }, async () => {
    for (let seed = 1; seed <= Number(process.env['ROUNDS'] ?? 250); seed++) {
      const random = new Random(Math.imul(seed, 0x9e3779b1))
      const before = randomModel(random, random.integer(0, 12))
      const after = randomEdits(random, before, random.integer(1, 12))
      if (program === 'patch' && collides(before, after)) continue
      await check(program, before, after, `seed ${seed}:`)
    }
  })
}

test('a patch beyond its limit, or with content that was not stored, is refused by name', async () => {
  const after = new Map([['a', file('x'.repeat(1_000))], ['b', file('y')]])
  const changes = atOnce(netChanges(treeOf(new Map()), treeOf(after)))
  const large = patchOf(changes, contentsOf(after), 1_000)
  await assert.rejects(large, { problem: 'too_large' })
  const lost = changes.map((it) => ({ ...it, after: { ...it.after!, stored: false as const } }))
  await assert.rejects(patchOf(lost, contentsOf(after)), { problem: 'not_kept', paths: ['a', 'b'] })
})
