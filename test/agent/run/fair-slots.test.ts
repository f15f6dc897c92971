/** Slots go round over the roots of runs: the scheduler against rules that compare all runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scheduler } from '../../../lib/agent/run/scheduler.js'
import { Random } from '../../helpers/random.js'

interface Run {
  readonly runId: string
  readonly root: string
  readonly cwd: string
}

test('a tree with many waiting runs takes turns with the runs that come later', () => {
  const scheduler = new Scheduler(1, true)
  const started: string[] = []
  const queue = (runId: string, root?: string): void =>
    scheduler.queue(runId, `/${runId}`, () => started.push(runId), root)
  queue('first')
  for (const child of ['a1', 'a2', 'a3', 'a4']) queue(child, 'a')
  for (const single of ['b', 'c']) queue(single)
  queue('d1', 'd')
  for (let i = 0; i < 3; i++) scheduler.leave(started.at(-1)!)
  assert.deepEqual(started, ['first', 'a1', 'b', 'c'])
  queue('e')
  while (scheduler.waiting > 0) scheduler.leave(started.at(-1)!)
  assert.deepEqual(started.slice(4), ['d1', 'a2', 'e', 'a3', 'a4'])
})

test('a root whose next run waits for a folder keeps its turn, and gets no second one for it', () => {
  const scheduler = new Scheduler(2, true)
  const started: string[] = []
  const queue = (runId: string, cwd: string, root?: string): void =>
    scheduler.queue(runId, cwd, () => started.push(runId), root)
  queue('holder', '/x')
  queue('other', '/y')
  queue('a1', '/x', 'a')
  queue('a2', '/p', 'a')
  queue('b', '/q')
  scheduler.leave('other')
  assert.deepEqual(started.slice(2), ['a2'])
  // The first run of the tree is older than b, but the tree has had a turn since b came.
  scheduler.pause('a2')
  scheduler.leave('holder')
  assert.deepEqual(started.slice(2), ['a2', 'b', 'a1'])
})

test('runs that have begun take turns among themselves, before all others', () => {
  const scheduler = new Scheduler(4, true)
  const started: string[] = []
  const queue = (runId: string, root?: string): void =>
    scheduler.queue(runId, `/${runId}`, () => started.push(runId), root)
  for (const runId of ['a1', 'a2', 'a3', 'b']) queue(runId, runId[0])
  for (const runId of ['a1', 'a2', 'a3', 'b']) scheduler.pause(runId)
  for (const runId of ['n1', 'n2', 'n3', 'n4', 'n5']) queue(runId)
  for (const runId of ['a1', 'a2', 'a3', 'b']) queue(runId, runId[0])
  started.length = 0
  for (const runId of ['n1', 'n2', 'n3', 'n4', 'a1']) scheduler.leave(runId)
  assert.deepEqual(started, ['a1', 'b', 'a2', 'a3', 'n5'])
})

/** What the scheduler must keep to, by looking at every run at each start. */
class Rules {
  readonly waiting: Run[] = []
  readonly begun: Run[] = []
  readonly working = new Map<string, Run>()
  readonly paused = new Map<string, Run>()
  /** By root that could start: which others had a turn since then, or since its own last one. */
  readonly #passed = new Map<string, Set<string>>()
  readonly #exclusive: boolean

  constructor(exclusive: boolean) {
    this.#exclusive = exclusive
  }

  /** Those that can start as soon as there is a slot; runs that have begun come first. */
  get startable(): readonly Run[] {
    return [...this.begun, ...this.waiting.filter((run, i) => this.#isFree(run, i))]
  }

  startedNow(runId: string, about: string): void {
    const before = this.startable
    const hasBegun = this.begun.length > 0
    const own = hasBegun ? this.begun : before
    const run = own.find((one) => one.runId === runId)
    assert.ok(run, `${about}: ${runId} must not start yet`)
    const first = own.find(({ root }) => root === run.root)
    assert.equal(first, run, `${about}: runs of one root start in their order`)
    for (const root of new Set(own.map((one) => one.root))) {
      if (root === run.root) continue
      const passed = this.#of(root, hasBegun)
      assert.ok(!passed.has(run.root), `${about}: ${run.root} has two turns, ${root} none`)
      passed.add(run.root)
    }
    this.#passed.delete(key(run.root, hasBegun))
    const queue = hasBegun ? this.begun : this.waiting
    queue.splice(queue.indexOf(run), 1)
    this.paused.delete(runId)
    this.working.set(runId, run)
    this.changed()
  }

  /** Forgets the waits of roots that can start nothing now. */
  changed(): void {
    const roots = new Set(this.startable.map((run) => key(run.root, this.begun.includes(run))))
    for (const root of this.#passed.keys()) if (!roots.has(root)) this.#passed.delete(root)
  }

  leave(runId: string): void {
    this.working.delete(runId)
    this.paused.delete(runId)
    for (const queue of [this.begun, this.waiting]) {
      const index = queue.findIndex((run) => run.runId === runId)
      if (index >= 0) queue.splice(index, 1)
    }
    this.changed()
  }

  #of(root: string, hasBegun: boolean): Set<string> {
    const passed = this.#passed.get(key(root, hasBegun)) ?? new Set()
    this.#passed.set(key(root, hasBegun), passed)
    return passed
  }

  #isFree({ cwd }: Run, position: number): boolean {
    if (!this.#exclusive) return true
    const taken = [...this.working.values(), ...this.paused.values()]
    return ![...this.waiting.slice(0, position), ...taken].some((run) => run.cwd === cwd)
  }
}

function key(root: string, hasBegun: boolean): string {
  return `${root} ${hasBegun}`
}

for (const slots of [1, 2, 5]) {
  for (const exclusive of [true, false]) {
    const folders = exclusive ? 'folders of their own' : 'shared folders'
    test(`no root has two of ${slots} slots while another gets none: ${folders}`, () => {
      for (let seed = 1; seed <= 30; seed++) byTheRules(slots, exclusive, seed)
    })
  }
}

function byTheRules(slots: number, exclusive: boolean, seed: number): void {
  const random = new Random(seed)
  const scheduler = new Scheduler(slots, exclusive)
  const rules = new Rules(exclusive)
  let about = ''
  const enter = (run: Run, queue: Run[]): void => {
    queue.push(run)
    scheduler.queue(run.runId, run.cwd, () => rules.startedNow(run.runId, about), run.root)
  }
  const leave = (runId: string): void => {
    rules.leave(runId)
    scheduler.leave(runId)
  }
  for (let step = 0; step < 150; step++) {
    about = `seed ${seed}, step ${step}`
    const choice = random.next()
    const live = [...rules.working.keys()]
    const idle = [...rules.paused.values()].filter((run) => !rules.begun.includes(run))
    if (choice < 0.5) {
      const root = random.pick(['a', 'a', 'a', 'b', 'c', `${step}`])
      enter({ runId: `${step}`, root, cwd: `/${random.integer(1, 12)}` }, rules.waiting)
    } else if (choice < 0.6 && live.length > 0) {
      const runId = random.pick(live)
      rules.paused.set(runId, rules.working.get(runId)!)
      rules.working.delete(runId)
      scheduler.pause(runId)
    } else if (choice < 0.7 && idle.length > 0) enter(random.pick(idle), rules.begun)
    else {
      const waiting = [...rules.waiting, ...rules.begun].map(({ runId }) => runId)
      const all = [...live, ...live, ...waiting]
      if (all.length > 0) leave(random.pick(all))
    }
    const isFull = rules.working.size === slots
    assert.ok(isFull || rules.startable.length === 0, `${about}: a slot is empty`)
    assert.equal(scheduler.isFull, isFull, about)
    assert.equal(scheduler.waiting, rules.waiting.length + rules.begun.length, about)
  }
}

test('runs that are their own roots start as first come, first served: shared folders', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = new Random(seed)
    const scheduler = new Scheduler(2, false)
    const started: string[] = []
    const expected: string[] = []
    const working: string[] = []
    const reserved = new Set<string>()
    let waiting: { readonly runId: string; readonly cwd: string }[] = []
    const fill = (): void => {
      while (working.length < 2) {
        const next = waiting.find(({ cwd }) => !reserved.has(cwd))
        if (next === undefined) return
        waiting = waiting.filter((run) => run !== next)
        working.push(next.runId)
        expected.push(next.runId)
      }
    }
    for (let step = 0; step < 150; step++) {
      const choice = random.next()
      const cwd = `/${random.integer(1, 4)}`
      if (choice < 0.5) {
        waiting.push({ runId: `${step}`, cwd })
        scheduler.queue(`${step}`, cwd, () => started.push(`${step}`))
      } else if (choice < 0.6) {
        if (scheduler.reserve(`files of ${cwd}`, cwd) === null) reserved.add(cwd)
      } else if (choice < 0.75) {
        reserved.delete(cwd)
        fill()
        scheduler.release(`files of ${cwd}`)
      } else if (working.length + waiting.length > 0) {
        const runId = random.pick([...working, ...waiting.map((run) => run.runId)])
        if (working.includes(runId)) working.splice(working.indexOf(runId), 1)
        waiting = waiting.filter((run) => run.runId !== runId)
        fill()
        scheduler.leave(runId)
      }
      fill()
      assert.deepEqual(started, expected, `seed ${seed}, step ${step}`)
    }
  }
})
