/** Processes that die at any call of the file system while they make, hand on and remove copies. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Project } from '../../helpers/isolated.js'
import { wholeTree } from '../../helpers/whole-tree.js'

/** What changes something; the rest only looks. */
const CALLS = ['mkdir', 'rename', 'unlink', 'writeFile'] as const
const originals = new Map(CALLS.map((name) => [name, files[name] as (...args: never[]) => unknown]))

/** Calls until the process dies; the last one has its effect if `keepsLast`. */
let left = Infinity
let keepsLast = false
let die: () => void = () => undefined
/** Of the process that calls; what it does at the same time ends with it. */
const life = new AsyncLocalStorage<{ isOver: boolean }>()

for (const [name, call] of originals) {
  const mortal = (...args: never[]): unknown => {
    if (life.getStore()?.isOver === true) return new Promise(() => undefined)
    left -= 1
    if (left > 0) return call(...args)
    const dead = new Promise(() => undefined)
    if (left < 0 || !keepsLast) return die(), dead
    void Promise.resolve(call(...args)).then(die, die)
    return dead
  }
  Object.assign(files, { [name]: mortal })
}
syncBuiltinESMExports()

/** Does something in a process that dies at a call; false when it did not come to that. */
async function dies(work: () => Promise<unknown>, at: number, keeps: boolean): Promise<boolean> {
  const mine = { isOver: false }
  const death = new Promise<true>((resolve) => {
    die = () => {
      mine.isOver = true
      resolve(true)
    }
  })
  left = at
  keepsLast = keeps
  const isDead = await Promise.race([life.run(mine, work).then(() => false), death])
  left = Infinity
  return isDead
}

interface Work {
  readonly name: string
  /** What there is before, besides the copy of `inUse`. */
  readonly before: readonly string[]
  readonly work: (project: Project) => Promise<unknown>
  /** Runs that may have the copy of `old` afterwards; none: it may be gone. */
  readonly keeps: readonly string[]
}

const cases: readonly Work[] = [
  { name: 'made', before: [], work: (project) => project.isolate('new'), keeps: [] },
  {
    name: 'made for a sealed check',
    before: [],
    work: (project) => project.isolate('new', {
      sealed: true, unread: true, mounts: true, without: ['node_modules/.cache'],
    }),
    keeps: [],
  },
  { name: 'made anew', before: ['old'], work: (project) => project.isolate('old'), keeps: [] },
  {
    name: 'handed on',
    before: ['old'],
    work: ({ folders }) => folders.adopt('old', 'new'),
    keeps: ['old', 'new'],
  },
  {
    name: 'handed on in place of another',
    before: ['old', 'new'],
    work: ({ folders }) => folders.adopt('old', 'new'),
    keeps: ['old', 'new'],
  },
  { name: 'removed', before: ['old'], work: ({ folders }) => folders.remove('old'), keeps: [] },
  {
    name: 'swept',
    before: ['old', 'new'],
    work: ({ folders }) => folders.sweep((runId) => Promise.resolve(runId === 'inUse')),
    keeps: [],
  },
]

for (const { name, before, work, keeps } of cases) {
  test(`nothing is lost or left when a process dies while a copy is ${name}`, async (t) => {
    let at = 1
    for (; (await survives(t, before, work, keeps, at, false)) ; at++) {
      await survives(t, before, work, keeps, at, true)
    }
    assert.ok(at > 1)
  })
}

/** Dies, starts again, and looks at what there is; false when it did not die. */
async function survives(
  t: TestContext,
  before: readonly string[],
  work: Work['work'],
  keeps: readonly string[],
  at: number,
  keepsLast: boolean,
): Promise<boolean> {
  const project = new Project(t).write({ 'a.txt': 'a', 'b/c.txt': 'c' })
  const original = project.outside()
  for (const runId of ['inUse', ...before]) {
    const { root } = await project.isolate(runId)
    writeFileSync(join(root, 'mine'), runId)
  }
  const isDead = await dies(() => work(project), at, keepsLast)
  const told = `call ${at}${keepsLast ? ', which had its effect' : ''}`
  project.assertUntouched(original)

  const folders = project.foldersWith({})
  const runs = ['inUse', 'old', 'new']
  await folders.sweep((runId) => Promise.resolve(runs.includes(runId)))
  const whole = { times: false }
  const expected = wholeTree(project.cwd, whole)
  const owners: string[] = []
  for (const runId of runs) {
    const found = await folders.usable(runId, false)
    if (found === null) continue
    const { mine, ...rest } = wholeTree(found.root, whole)
    assert.deepEqual(rest, expected, `${told}: the copy of ${runId} is whole`)
    if (mine !== undefined) owners.push(readFileSync(join(found.root, 'mine'), 'utf8'))
  }
  assert.ok(owners.includes('inUse'), `${told}: the copy in use is kept`)
  if (keeps.length > 0) assert.ok(owners.includes('old'), `${told}: the copy is still some run's`)
  const left = readdirSync(project.copies)
  assert.ok(left.every((one) => runs.includes(one)), `${told}: left ${left.join()}`)
  await folders.sweep((runId) => Promise.resolve(runId === 'inUse'))
  assert.deepEqual(readdirSync(project.copies), ['inUse'], told)
  project.assertUntouched(original)
  return isDead
}
