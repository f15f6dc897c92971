import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { netChanges } from '../../../lib/agent/workspace/net-changes.js'
import { patchOf } from '../../../lib/agent/workspace/patch.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf, file, link, listing, randomEdits, randomModel, readModel, treeOf, writeModel,
  type Model,
} from '../../helpers/tree-model.js'

const GIT_ENV = {
  PATH: process.env['PATH'],
  GIT_CONFIG_NOSYSTEM: '1',
  HOME: '/nonexistent',
  GIT_CEILING_DIRECTORIES: tmpdir(),
}

/** Programs that apply patches; each with the form of patch that it takes whole. */
const PROGRAMS = {
  git: { command: ['git', 'apply', '-p1', '--whitespace=nowarn'], plain: [false, true] },
  patch: { command: ['patch', '-p1', '-f', '-s'], plain: [true] },
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
  plain: boolean,
  hint = '',
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'patch-'))
  try {
    writeModel(folder, before)
    const changes = netChanges(treeOf(before), treeOf(after))
    const input = await patchOf(changes, contentsOf(before, after), { plain })
    const [command, ...args] = PROGRAMS[program].command
    if (input.length > 0) {
      const { status, stdout, stderr } = spawnSync(command!, args, { cwd: folder, input, env: GIT_ENV })
      const why = `${hint}${program} ${plain ? 'plain' : ''}\n${stdout}${stderr}\n${input.toString('latin1')}`
      assert.equal(status, 0, why)
      assert.deepEqual(listing(readModel(folder)), listing(after), why)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const lines = (count: number): string => Array.from({ length: count }, (_, i) => `${i}\n`).join('')
const binary = Buffer.from([0, 1, 2, 255, 10, 0, 13, 10])

const CASES: Readonly<Record<string, readonly [Readonly<Record<string, ReturnType<typeof file>>>, Readonly<Record<string, ReturnType<typeof file>>>]>> = {
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

for (const [name, [before, after]] of Object.entries(CASES)) {
  for (const [program, { plain }] of Object.entries(PROGRAMS)) {
    test(`${program} applies a patch: ${name}`, { skip: isMissing(program) }, async () => {
      for (const form of plain) {
        const [a, b] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
        if (program === 'patch' && collides(a, b)) continue
        await check(program as keyof typeof PROGRAMS, a, b, form)
        await check(program as keyof typeof PROGRAMS, b, a, form, 'back: ')
      }
    })
  }
}

for (const [program, { plain }] of Object.entries(PROGRAMS)) {
  test(`${program} applies patches of 250 random changes`, { skip: isMissing(program) }, async () => {
    for (let seed = 1; seed <= Number(process.env['ROUNDS'] ?? 250); seed++) {
      const random = new Random(Math.imul(seed, 0x9e3779b1))
      const before = randomModel(random, random.integer(0, 12))
      const after = randomEdits(random, before, random.integer(1, 12))
      if (program === 'patch' && collides(before, after)) continue
      // Patch knows renames, but not git's form of binary content.
      const isText = [...before.values(), ...after.values()].every(({ content }) => !content.includes(0))
      const forms = isText ? [false, true] : plain
      await check(program as keyof typeof PROGRAMS, before, after, random.pick(forms), `seed ${seed}: `)
    }
  })
}
