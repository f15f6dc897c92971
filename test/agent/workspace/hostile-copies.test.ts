/** What hostile folders, and strangers who change them meanwhile, do to copies. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { copyTree } from '../../../lib/agent/workspace/copy.js'
import { Place } from './hostile-place.js'

const LOST = { code: 'ERR_AGENT_WORKSPACE_LOST' }

for (const [what, swap] of [
  ['a link', ({ from }) => fs.symlinkSync('../other', from)],
  ['nothing', () => undefined],
  ['a file', ({ from }) => fs.writeFileSync(from, 'x')],
  [
    'a folder below a link',
    ({ from }) => {
      const above = dirname(from)
      fs.mkdirSync(from)
      fs.renameSync(above, `${above}-moved`)
      fs.symlinkSync(`${above}-moved`, above)
    },
  ],
] as [string, (place: Place) => void][]) {
  test(`a folder is not copied once there is ${what} in its place`, (t) => {
    const place = new Place(t).write('../../other/secret', 'not to be copied')
    fs.rmSync(place.from, { recursive: true })
    swap(place)
    assert.throws(() => place.copy(), LOST)
    assert.equal(fs.existsSync(place.to), false)
  })
}

test('the error of such a copy names the folder and its code', async (t) => {
  const { top, to } = new Place(t)
  fs.symlinkSync('above/original', join(top, 'link'))
  await assert.rejects(copyTree(join(top, 'link'), to), {
    ...LOST, message: /link cannot be copied to .* it was moved or deleted, or replaced by a link/,
  })
})

for (const [setting, kept] of [
  ['worktree = ..', 'worktree = ..'],
  ['worktree = ".." ; a comment', 'worktree = ".." ; a comment'],
  ['worktree = ../../elsewhere', ''],
  ['worktree = ".."/../../elsewhere', ''],
  ['worktree = .."/../../elsewhere"', ''],
  ['worktree = ..\\\n/../../elsewhere', ''],
  ['worktree = "..\\\n/../\\\n../elsewhere"', ''],
  ['worktree = ..\\\r\n/../../elsewhere', ''],
  ['worktree = "/else\\where"', ''],
] as const) {
  const becomes = kept === '' ? 'is dropped' : 'stays'
  test(`in the copy of a repository, ${JSON.stringify(setting)} ${becomes}`, (t) => {
    const config = (line: string): string => `[core]\n${line}\n\tbare = false\n`
    const place = new Place(t).write('.git/HEAD', 'x').write('.git/config', config(setting))
    const notes = place.copy()
    assert.equal(place.inCopy('.git/config'), config(kept))
    assert.equal(/^Settings of repositories that lead out/.test(notes), kept === '')
  })
}

for (const [path, text, becomes] of [
  ['.venv/lib/x.pth', '@/src\n', '^/src\n'],
  ['node_modules/.package-lock.json', '{"a": "@/src"}\n', '{"a": "^/src"}\n'],
  ['.git', 'gitdir: /elsewhere/.git\n', 'gitdir: /nonexistent/not-part-of-this-copy\n'],
  ['.git/config', '[core]\nworktree = /elsewhere\n', '[core]\n\n'],
  ['.git/hooks/pre-commit', '#!@/bin/x\n', '#!^/bin/x\n'],
] as const) {
  test(`${path} is redirected whatever its size`, (t) => {
    const place = new Place(t)
    const content = text.replace('@', place.from) + '\n'.repeat(300_000)
    if (path !== '.git') place.write('.git/HEAD', 'ref: refs/heads/main\n')
    place.write(path, content).copy()
    const expected = becomes.replace('^', place.to)
    assert.equal(place.inCopy(path).slice(0, expected.length), expected)
  })
}

test('one that is larger than can be looked through is named', (t) => {
  const place = new Place(t).write('.venv/x.pth', '')
  fs.truncateSync(join(place.from, '.venv/x.pth'), 33 * 1024 ** 2)
  assert.match(place.copy(), /^These files are too large.*: \.venv\/x\.pth\.$/)
})

/** What `readdir` finds, and what is there when it is looked at. */
for (const [what, change, copied] of [
  ['a file that becomes a link', (path) => fs.symlinkSync('b', path), '-> b'],
  ['a file that becomes a folder', (path) => fs.mkdirSync(path), 'folder'],
  ['a link that becomes a file', (path) => fs.writeFileSync(path, 'new'), 'new'],
  ['a link that becomes a folder', (path) => fs.mkdirSync(path), 'folder'],
  ['a folder that becomes a file', (path) => fs.writeFileSync(path, 'new'), 'new'],
  ['a folder that becomes a link', (path) => fs.symlinkSync('b', path), '-> b'],
  ['a file that is deleted', () => undefined, 'nothing'],
] as [string, (path: string) => void, string][]) {
  test(`${what} while its folder is copied is copied as what it is now`, (t) => {
    const place = new Place(t).write('a', 'x').write('b', 'x')
    const path = join(place.from, 'z')
    if (what.startsWith('a link')) fs.symlinkSync('b', path)
    else if (what.startsWith('a folder')) fs.mkdirSync(path)
    else fs.writeFileSync(path, 'old')
    place.copy((count) => {
      // Before the third entry.
      if (count !== 3) return
      fs.rmSync(path, { recursive: true })
      change(path)
    })
    assert.equal(seen(join(place.to, 'z')), copied)
  })
}

function seen(path: string): string {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 'nothing'
  if (stats.isDirectory()) return 'folder'
  return stats.isFile() ? fs.readFileSync(path, 'utf8') : `-> ${fs.readlinkSync(path)}`
}
