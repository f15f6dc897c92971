/**
 * The contract of `WorkspaceCopies` as tests for `node:test`.
 *
 * @module
 */
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { WorkspaceCopies, WorkspaceCopy } from '../workspace-copy.js'

/** What a suite opens for each of its tests. */
export interface OpenedCopies {
  /** The copies for a call of a tool. */
  readonly copies: WorkspaceCopies
  /** Real path of the workspace: a folder with the file `a.txt`, whose text is `one\n`. */
  readonly folder: string
  /** Ends the call, and gives the copies for the next call of the same run. */
  next(): Promise<WorkspaceCopies>
  /** Aborts the call. */
  abort(): void
}

/** Options of {@link testWorkspaceCopies}. */
export interface TestWorkspaceCopiesOptions {
  /** Why to skip the whole suite, for example because a sandbox is missing. */
  readonly skip?: string | undefined
}

const OPTIONS: OptionKinds<TestWorkspaceCopiesOptions> = { skip: 'string' }

/** What each test works with. */
interface Opened extends OpenedCopies {
  readonly copy: WorkspaceCopy
  /** Files of the workspace with their texts. */
  files(): Promise<Readonly<Record<string, string>>>
}

/**
 * Defines a suite of tests that checks an implementation of `WorkspaceCopies` against its contract:
 * for executors of your own, whose commands run in the copies of an engine, and for stand-ins with
 * which you test a tool. Call it at the top level of a test file.
 *
 * @param open - opens a workspace and its copies; clean up after it in `t.after()`.
 * @throws TypeError that names an invalid argument or option.
 */
export function testWorkspaceCopies(
  name: string,
  open: (t: TestContext) => Promise<OpenedCopies>,
  options: TestWorkspaceCopiesOptions = {},
): void {
  checkOptions(options, OPTIONS, 'testWorkspaceCopies()')
  if (typeof name !== 'string' || typeof open !== 'function') {
    throw new TypeError('testWorkspaceCopies() needs a name, and a function that opens copies')
  }
  const check = (title: string, body: (opened: Opened) => Promise<void>): void => {
    test(title, async (t) => {
      const opened = await open(t)
      const copy = await opened.copies.open('first')
      const files = async (): Promise<Record<string, string>> => {
        const names = (await readdir(opened.folder)).sort()
        const read = (one: string): Promise<string> => readFile(join(opened.folder, one), 'utf8')
        const pairs = names.map(async (one) => [one, await read(one)] as const)
        return Object.fromEntries(await Promise.all(pairs))
      }
      await body({ ...opened, copy, files })
      assert.deepEqual(await files(), { 'a.txt': 'one\n' }, 'the workspace has changed')
    })
  }
  const { skip = false } = options
  describe(`${name} keeps the contract of WorkspaceCopies`, { skip }, () => {
    testContent(check)
    testEdits(check)
    testLifetimes(check)
    testCommands(check)
  })
}

type Check = (title: string, body: (opened: Opened) => Promise<void>) => void

/** What a command that succeeds prints. */
async function outputOf(copy: WorkspaceCopy, command: string): Promise<string> {
  const { output, exitCode } = await copy.run(command)
  assert.equal(exitCode, 0, output)
  return output
}

function testContent(check: Check): void {
  check('a command sees the workspace, and changes its copy', async ({ copy }) => {
    assert.equal(await outputOf(copy, 'cat a.txt; echo two > a.txt; echo new > b.txt'), 'one\n')
    assert.equal(await outputOf(copy, 'cat a.txt b.txt'), 'two\nnew\n')
    assert.deepEqual(await copy.changed(), ['a.txt'], 'new files are not listed')
  })

  check('copies with different names do not see each other', async ({ copies, copy }) => {
    const other = await copies.open('second')
    assert.notEqual(other.root, copy.root)
    assert.equal(other.version, copy.version)
    await outputOf(copy, 'echo two > a.txt')
    assert.equal(await outputOf(other, 'cat a.txt'), 'one\n')
    assert.deepEqual(await other.changed(), [])
  })

  check('output names the workspace in place of the copy', async ({ copy, folder }) => {
    assert.equal(await outputOf(copy, 'pwd'), `${folder}\n`)
  })
}

const TWO = { path: 'a.txt', old_text: 'one', new_text: 'two' }

function testEdits(check: Check): void {
  check('edits are made one after the other, and taken back', async ({ copy }) => {
    for (const path of ['a.txt', './a.txt', `${copy.root}/a.txt`]) {
      const three = { path, old_text: 'two', new_text: 'three' }
      const edited = await copy.withEdits([TWO, three], () => outputOf(copy, 'cat a.txt'))
      assert.deepEqual(edited, { made: true, value: 'three\n' })
    }
    assert.equal(await outputOf(copy, 'cat a.txt'), 'one\n')
    assert.deepEqual(await copy.changed(), [])
  })

  check('edits are taken back when the work fails', async ({ copy }) => {
    const failing = copy.withEdits([TWO], () => Promise.reject(new Error('the work failed')))
    await assert.rejects(failing, /^Error: the work failed$/)
    assert.equal(await outputOf(copy, 'cat a.txt'), 'one\n')
  })

  check('an impossible edit is explained, and no edit remains', async ({ copy }) => {
    let calls = 0
    const work = (): Promise<number> => Promise.resolve((calls += 1))
    for (const path of ['a.txt', 'none.txt', '../a.txt']) {
      const edited = await copy.withEdits([TWO, { path, old_text: 'four', new_text: '' }], work)
      assert.ok(!edited.made && edited.problem !== '', path)
    }
    assert.equal(calls, 0)
    assert.equal(await outputOf(copy, 'cat a.txt'), 'one\n')
  })

  check('a command that changes an edited file afterwards is noticed', async ({ copy }) => {
    await copy.withEdits([TWO], () => outputOf(copy, 'true'))
    assert.deepEqual(await copy.changed(), [])
    await outputOf(copy, 'echo two > a.txt')
    assert.deepEqual(await copy.changed(), ['a.txt'])
  })

  check('more than 16 edits are refused', async ({ copy }) => {
    const edits = Array.from({ length: 17 }, () => TWO)
    await assert.rejects(copy.withEdits(edits, () => outputOf(copy, 'true')), TypeError)
  })
}

function testLifetimes(check: Check): void {
  check('a copy is kept for the next call', async ({ copy, next }) => {
    await outputOf(copy, 'echo kept > b.txt')
    const again = await (await next()).open('first')
    assert.equal(again.root, copy.root)
    assert.equal(await outputOf(again, 'cat b.txt'), 'kept\n')
  })

  check('a removed copy is made anew', async ({ copies, copy }) => {
    await outputOf(copy, 'echo two > a.txt')
    await copy.remove()
    const again = await copies.open('first')
    assert.notEqual(again.root, copy.root)
    assert.equal(again.version, copy.version)
    assert.equal(await outputOf(again, 'cat a.txt'), 'one\n')
    await copy.remove()
    assert.equal((await copies.open('first')).root, again.root, 'the new copy stays')
  })

  check('copies of a workspace that has changed are made anew', async (opened) => {
    const { copy, folder, next } = opened
    await writeFile(join(folder, 'a.txt'), 'changed\n')
    const again = await (await next()).open('first')
    assert.notEqual(again.root, copy.root)
    assert.notEqual(again.version, copy.version)
    assert.equal(await outputOf(again, 'cat a.txt'), 'changed\n')
    await writeFile(join(folder, 'a.txt'), 'one\n')
  })

  check('names are checked, and at most 16 copies are open', async ({ copies }) => {
    for (const name of ['', 'A', '../a', 'a'.repeat(33)]) {
      await assert.rejects(copies.open(name), TypeError, name)
    }
    for (let at = 1; at < 16; at++) await copies.open(`copy-${at}`)
    await assert.rejects(copies.open('copy-16'), /remove\(\)/)
    await (await copies.open('copy-1')).remove()
    await copies.open('copy-16')
  })
}

function testCommands(check: Check): void {
  check('commands take variables, arguments, a folder and limits', async ({ copy }) => {
    const env = { WORD: 'a b' }
    assert.equal((await copy.run('echo "$WORD"', { env })).output, 'a b\n')
    assert.equal((await copy.run('echo', { args: ['$WORD', 'x y'], env })).output, '$WORD x y\n')
    assert.equal((await copy.run('exit 3')).exitCode, 3)
    const late = await copy.run('sleep 30', { timeoutMs: 50 })
    assert.deepEqual([late.exitCode, late.timedOut], [124, true])
    const cut = await copy.run('seq 10000', { maxOutputBytes: 1_000 })
    assert.ok(cut.truncated && cut.output.length < 2_000)
  })

  check('a command is stopped by its own signal, and with the call', async ({ abort, copy }) => {
    const own = new AbortController()
    const onStart = (): Promise<void> => Promise.resolve(own.abort())
    const stopped = await copy.run('sleep 30', { signal: own.signal, onStart })
    assert.equal(stopped.exitCode, 130)
    const running = copy.run('sleep 30', { onStart: () => Promise.resolve(abort()) })
    const ended = await running.then(({ exitCode }) => exitCode, () => 130)
    assert.equal(ended, 130)
  })

  check('a private folder is empty, writable for commands, and removed', async ({ copy }) => {
    let place = ''
    const said = await copy.withFolder(async (folder) => {
      place = folder
      assert.deepEqual(await readdir(folder), [])
      await copy.run('echo said > "$AT/said.txt"', { env: { AT: folder }, writable: [folder] })
      return await readFile(join(folder, 'said.txt'), 'utf8')
    })
    assert.equal(said, 'said\n')
    await assert.rejects(readdir(place), { code: 'ENOENT' })
  })
}
