/** Processes that die at any change of files while they make, hand on and remove copies. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { Project } from '../../helpers/isolated.js'
import { Children, noSmallDisk, SMALL_DISK } from '../../helpers/kill.js'
import { hookFiles, MortalProcess } from '../../helpers/mortal-process.js'
import { wholeTree } from '../../helpers/whole-tree.js'

const children = new Children<typeof import('./kill-children.js')>(
  new URL('kill-children.ts', import.meta.url),
)

/** What changes something; the rest only looks. */
const CHANGES = ['mkdir', 'rename', 'unlink', 'writeFile']
const files = hookFiles()
after(() => files[Symbol.dispose]())

/** Does something in a process that dies at a change; false when it did not come to that. */
async function dies(
  work: () => Promise<unknown>,
  at: number,
  keepsLast: boolean,
): Promise<boolean> {
  const mortal = new MortalProcess(new MemoryStore(), () => keepsLast, CHANGES)
  mortal.dieAfter(at)
  const done = mortal.run(work).then(() => false)
  return await Promise.race([done, mortal.died.then(() => true)])
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

test('a process that is killed leaves no half of a copy', async (t) => {
  const place = new Project(t)
  for (let i = 0; i < 100; i++) place.write({ [`f${i}/x`]: `${i}` })
  const exact = { times: false }
  for (let i = 0; i < 4; i++) {
    const child = children.start(t, 'copyForEver', { folder: place.copies, cwd: place.cwd })
    assert.equal(await child.line(), 'again')
    for (let turns = 0; turns < i * 15; turns++) await new Promise(setImmediate)
    child.kill()
    await child.ended
    const found = await place.folders.find('run')
    if (found !== null) {
      assert.deepEqual(wholeTree(found.root, exact), wholeTree(place.cwd, exact))
    }
    const { root } = await place.isolate('run')
    assert.deepEqual(wholeTree(root, exact), wholeTree(place.cwd, exact))
    await place.folders.sweep((runId) => Promise.resolve(runId === 'run'))
    assert.deepEqual(readdirSync(place.copies), ['run'])
    rmSync(root, { recursive: true })
  }
})

test('a full disk is an error that says so, and nothing is left',
  { skip: noSmallDisk() },
  async (t) => {
    const { cwd } = new Project(t)
    for (let i = 0; i < 20; i++) writeFileSync(join(cwd, `${i}`), Buffer.alloc(100_000, 1))
    const plan = { folder: '/mnt/workspaces', cwd }
    const { lines } = await children.run('copyOnce', plan, { under: SMALL_DISK })
    assert.match(lines[0]!, /cannot be copied to .*: the disk is full; free some space/)
    assert.equal(lines[1], 'left: []')
  })
