/** Slots go round over tenants and roots: the scheduler against rules that compare all runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scheduler } from '../../../lib/agent/run/scheduler.js'
import { Random } from '../../helpers/random.js'
import { single } from './single.js'

interface Run {
  readonly runId: string
  readonly tenant: string | null
  readonly root: string
  readonly cwd: string
}

/** Queues runs, and lists those that have started, in order. */
function queueing(scheduler: Scheduler): {
  readonly order: string[]
  queue(runId: string, root?: string, tenant?: string | null, cwd?: string): void
} {
  const order: string[] = []
  return {
    order,
    queue: (runId, root = runId, tenant = null, cwd = `/${runId}`) =>
      scheduler.queue({ runId, tenant, root }, cwd, () => order.push(runId)),
  }
}

test('a tenant with many waiting runs takes turns with tenants that come later', () => {
  const scheduler = new Scheduler(1, true)
  const { order, queue } = queueing(scheduler)
  for (let n = 0; n < 200; n++) queue(`a${n}`, undefined, 'a')
  for (const child of ['b1', 'b2', 'b3']) queue(child, 'b', 'b')
  queue('b4', undefined, 'b')
  queue('c', undefined, null)
  for (let i = 0; i < 9; i++) scheduler.leave(order.at(-1)!)
  assert.deepEqual(order, ['a0', 'a1', 'b1', 'c', 'a2', 'b4', 'a3', 'b2', 'a4', 'b3'])
})

test('a tree with many waiting runs takes turns with the runs that come later', () => {
  const scheduler = new Scheduler(1, true)
  const { order, queue } = queueing(scheduler)
  queue('first')
  for (const child of ['a1', 'a2', 'a3', 'a4']) queue(child, 'a')
  for (const single of ['b', 'c']) queue(single)
  queue('d1', 'd')
  for (let i = 0; i < 3; i++) scheduler.leave(order.at(-1)!)
  assert.deepEqual(order, ['first', 'a1', 'b', 'c'])
  queue('e')
  for (let i = 0; i < 5; i++) scheduler.leave(order.at(-1)!)
  assert.deepEqual(order.slice(4), ['d1', 'a2', 'e', 'a3', 'a4'])
})

test('a root whose next run waits for a folder keeps its turn, and gets no second one for it', () => {
  const scheduler = new Scheduler(2, true)
  const { order, queue } = queueing(scheduler)
  queue('holder', undefined, null, '/x')
  queue('other')
  queue('a1', 'a', null, '/x')
  queue('a2', 'a')
  queue('b')
  scheduler.leave('other')
  assert.deepEqual(order.slice(2), ['a2'])
  // The first run of the tree is older than b, but the tree has had a turn since b came.
  scheduler.pause('a2')
  scheduler.leave('holder')
  assert.deepEqual(order.slice(2), ['a2', 'b', 'a1'])
})

test('runs that have begun take turns among themselves, before all others', () => {
  const scheduler = new Scheduler(4, true)
  const { order, queue } = queueing(scheduler)
  for (const runId of ['a1', 'a2', 'a3', 'b']) queue(runId, runId[0])
  for (const runId of ['a1', 'a2', 'a3', 'b']) scheduler.pause(runId)
  for (const runId of ['n1', 'n2', 'n3', 'n4', 'n5']) queue(runId)
  for (const runId of ['a1', 'a2', 'a3', 'b']) queue(runId, runId[0])
  order.length = 0
  for (const runId of ['n1', 'n2', 'n3', 'n4', 'a1']) scheduler.leave(runId)
  assert.deepEqual(order, ['a1', 'b', 'a2', 'a3', 'n5'])
})

/** What the scheduler must keep to, by looking at every run at each start. */
class Rules {
  readonly waiting: Run[] = []
  readonly begun: Run[] = []
  readonly working = new Map<string, Run>()
  readonly paused = new Map<string, Run>()
  /**
   * By tenant or root that could start: which others of its kind had a turn since then, or since
   * its own last one.
   */
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
    const [tenant, root] = groupsOf(run)
    const others = own.filter((one) => one.tenant === run.tenant)
    for (const [group, rivals] of [
      [tenant, own.map((one) => groupsOf(one)[0])],
      [root, others.map((one) => groupsOf(one)[1])],
    ] as const) {
      for (const rival of new Set(rivals)) {
        if (rival === group) continue
        const passed = this.#of(rival, hasBegun)
        assert.ok(!passed.has(group), `${about}: ${group} has two turns, ${rival} none`)
        passed.add(group)
      }
      this.#passed.delete(key(group, hasBegun))
    }
    const queue = hasBegun ? this.begun : this.waiting
    queue.splice(queue.indexOf(run), 1)
    this.paused.delete(runId)
    this.working.set(runId, run)
    this.changed()
  }

  /** Forgets the waits of tenants and roots that can start nothing now. */
  changed(): void {
    const keys = new Set(
      this.startable.flatMap((run) =>
        groupsOf(run).map((group) => key(group, this.begun.includes(run))),
      ),
    )
    for (const group of this.#passed.keys()) if (!keys.has(group)) this.#passed.delete(group)
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

  #of(group: string, hasBegun: boolean): Set<string> {
    const passed = this.#passed.get(key(group, hasBegun)) ?? new Set()
    this.#passed.set(key(group, hasBegun), passed)
    return passed
  }

  #isFree({ cwd }: Run, position: number): boolean {
    if (!this.#exclusive) return true
    const taken = [...this.working.values(), ...this.paused.values()]
    return ![...this.waiting.slice(0, position), ...taken].some((run) => run.cwd === cwd)
  }
}

/** Names of its tenant and its root. */
function groupsOf({ tenant, root }: Run): readonly [string, string] {
  return [`tenant ${tenant}`, `root ${root}`]
}

function key(group: string, hasBegun: boolean): string {
  return `${group} ${hasBegun}`
}

for (const slots of [1, 2, 5]) {
  for (const exclusive of [true, false]) {
    const folders = exclusive ? 'folders of their own' : 'shared folders'
    test(`no tenant or root has two of ${slots} slots while another gets none: ${folders}`, () => {
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
    scheduler.queue(run, run.cwd, () => rules.startedNow(run.runId, about))
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
      const tenant = random.pick(['t', 't', 't', 'u', null])
      const root = random.pick(['a', 'a', 'a', 'b', 'c', `${step}`])
      const cwd = `/${random.integer(1, 12)}`
      enter({ runId: `${step}`, tenant, root: `${root} of ${tenant}`, cwd }, rules.waiting)
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
        scheduler.queue(single(`${step}`), cwd, () => started.push(`${step}`))
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
