/** Folders that are equal or nested exclude each other: the scheduler against a simple model. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scheduler } from '../../../lib/agent/run/scheduler.js'
import { FolderIndex } from '../../../lib/internal/folder-index.js'
import { Random } from '../../helpers/random.js'
import { single } from './single.js'

const never = new AbortController().signal

const EXCLUDING: readonly [string, string, boolean][] = [
  ['/a', '/a', true],
  ['/a', '/a/b', true],
  ['/a/b', '/a', true],
  ['/', '/a/b', true],
  ['/a/b/c', '/', true],
  ['/a', '/ab', false],
  ['/a/b', '/a/c', false],
  ['/a_b', '/axb', false],
  ['/a%', '/a/b', false],
  ['/A', '/a', false],
  ['/a/b', '/b', false],
]

for (const [first, second, excluded] of EXCLUDING) {
  test(`${first} ${excluded ? 'excludes' : 'does not exclude'} ${second}`, async () => {
    const scheduler = new Scheduler(2, true)
    await scheduler.enter(single('first'), first, never)
    void scheduler.enter(single('second'), second, never)
    assert.equal(scheduler.isWorking('second'), !excluded)
    scheduler.leave('first')
    assert.equal(scheduler.isWorking('second'), true)
    const index = new FolderIndex<string>()
    index.add('first', first)
    assert.equal(index.find(second), excluded ? 'first' : undefined)
    assert.equal(index.find(second, 'first'), undefined)
    index.remove('first', first)
    assert.equal(index.find(first), undefined)
  })
}

test('a folder is not starved by runs in it that come later; others pass them', async () => {
  const scheduler = new Scheduler(9, true)
  const started: string[] = []
  const enter = (runId: string, cwd: string): void =>
    scheduler.queue(single(runId), cwd, () => started.push(runId))
  enter('child', '/a/x')
  enter('parent', '/a')
  enter('later child', '/a/y')
  enter('other', '/b')
  assert.deepEqual(started, ['child', 'other'])
  scheduler.leave('child')
  assert.deepEqual(started, ['child', 'other', 'parent'])
  scheduler.leave('parent')
  assert.deepEqual(started, ['child', 'other', 'parent', 'later child'])
})

test('a run that gives up lets in those that waited for it only', async () => {
  const scheduler = new Scheduler(9, true)
  const stop = new AbortController()
  await scheduler.enter(single('child'), '/a/x', never)
  const parent = scheduler.enter(single('parent'), '/a', stop.signal)
  const later = scheduler.enter(single('later'), '/a/y', never)
  stop.abort(new Error('gone'))
  await assert.rejects(parent, /gone/)
  await later
  assert.equal(scheduler.isWorking('later'), true)
})

test('runs that had begun keep their folders, even nested ones; new runs wait for both', () => {
  const scheduler = new Scheduler(9, true)
  scheduler.hold('outer', '/a')
  scheduler.hold('inner', '/a/b')
  for (const runId of ['outer', 'inner']) scheduler.queue(single(runId), '/a', () => undefined)
  scheduler.queue(single('new'), '/a/b/c', () => undefined)
  assert.deepEqual(working(scheduler, ['outer', 'inner', 'new']), ['outer', 'inner'])
  scheduler.leave('outer')
  assert.equal(scheduler.isWorking('new'), false)
  scheduler.leave('inner')
  assert.equal(scheduler.isWorking('new'), true)
})

/** The rules of the scheduler in the plainest form: every pair of runs is compared. */
class Model {
  readonly started: string[] = []
  readonly working = new Map<string, string>()
  readonly paused = new Map<string, string>()
  readonly #slots: number
  readonly #begun: [string, string][] = []
  #waiting: [string, string][] = []

  constructor(slots: number) {
    this.#slots = slots
  }

  get waiting(): readonly string[] {
    return [...this.#begun, ...this.#waiting].map(([runId]) => runId)
  }

  enter(runId: string, cwd: string): void {
    if (this.paused.has(runId)) this.#begun.push([runId, cwd])
    else this.#waiting.push([runId, cwd])
    this.#fill()
  }

  pause(runId: string): void {
    this.paused.set(runId, this.working.get(runId)!)
    this.working.delete(runId)
    this.#fill()
  }

  leave(runId: string): void {
    this.working.delete(runId)
    this.paused.delete(runId)
    this.#waiting = this.#waiting.filter(([waiting]) => waiting !== runId)
    const index = this.#begun.findIndex(([waiting]) => waiting === runId)
    if (index >= 0) this.#begun.splice(index, 1)
    this.#fill()
  }

  #fill(): void {
    while (this.working.size < this.#slots) {
      const next = this.#begun.shift() ?? this.#waiting.find((one, i) => this.#isFree(one, i))
      if (next === undefined) return
      this.#waiting = this.#waiting.filter((one) => one !== next)
      this.paused.delete(next[0])
      this.working.set(...next)
      this.started.push(next[0])
    }
  }

  #isFree([, cwd]: [string, string], position: number): boolean {
    const earlier = this.#waiting.slice(0, position).map(([, folder]) => folder)
    const taken = [...this.working.values(), ...this.paused.values()]
    return ![...earlier, ...taken].some((folder) => overlap(folder, cwd))
  }
}

function overlap(a: string, b: string): boolean {
  const [outer, inner] = a.length <= b.length ? [a, b] : [b, a]
  return outer === '/' || outer === inner || inner.startsWith(`${outer}/`)
}

for (const slots of [1, 3, 100]) {
  test(`with ${slots} slots, random runs start exactly when and in the order they should`, () => {
    for (let seed = 1; seed <= 20; seed++) againstModel(slots, seed)
  })
}

function againstModel(slots: number, seed: number): void {
  const random = new Random(seed)
  const scheduler = new Scheduler(slots, true)
  const model = new Model(slots)
  const started: string[] = []
  const cwds = new Map<string, string>()
  const enter = (runId: string): void => {
    scheduler.queue(single(runId), cwds.get(runId)!, () => started.push(runId))
    model.enter(runId, cwds.get(runId)!)
  }
  for (let step = 0; step < 120; step++) {
    const choice = random.next()
    const live = [...model.working.keys()]
    const idle = [...model.paused.keys()].filter((runId) => !model.waiting.includes(runId))
    if (choice < 0.45) {
      const depth = random.integer(0, 4)
      const cwd = `/${Array.from({ length: depth }, () => random.pick(['a', 'ab', 'b_', '%'])).join('/')}`
      cwds.set(`${step}`, cwd)
      enter(`${step}`)
    } else if (choice < 0.55 && live.length > 0) {
      const runId = random.pick(live)
      scheduler.pause(runId)
      model.pause(runId)
    } else if (choice < 0.65 && idle.length > 0) enter(random.pick(idle))
    else {
      const all = [...live, ...model.waiting, ...idle]
      if (all.length === 0) continue
      const runId = random.pick(all)
      scheduler.leave(runId)
      model.leave(runId)
    }
    assert.deepEqual(started, model.started, `seed ${seed}, step ${step}`)
    const held = [...model.working, ...model.paused]
    for (const [i, [, a]] of held.entries())
      for (const [, b] of held.slice(i + 1)) assert.ok(!overlap(a, b), `${a}, ${b}: ${seed}`)
  }
  for (const runId of [...model.paused.keys()]) if (!model.waiting.includes(runId)) enter(runId)
  while (model.working.size > 0) {
    const [runId] = model.working.keys()
    scheduler.leave(runId!)
    model.leave(runId!)
  }
  assert.deepEqual(started, model.started)
  const waiting = [scheduler.queued(null).all, model.waiting]
  assert.deepEqual(waiting, [0, []], `seed ${seed}: every run had its turn`)
}

test('ten thousand runs that wait for overlapping folders get them in their order', () => {
  const runs = 10_000
  const scheduler = new Scheduler(1, true)
  const started: number[] = []
  for (let n = 0; n < runs; n++) {
    const cwd = n % 3 === 0 ? '/srv/a' : n % 3 === 1 ? `/srv/a/${n % 50}` : '/srv/b/c'
    scheduler.queue(single(`${n}`), cwd, () => started.push(n))
  }
  for (let n = 1; n < runs; n++) scheduler.leave(`${started.at(-1)}`)
  assert.deepEqual(started, Array.from({ length: runs }, (_, n) => n))
})

function working(scheduler: Scheduler, runIds: readonly string[]): readonly string[] {
  return runIds.filter((runId) => scheduler.isWorking(runId))
}
