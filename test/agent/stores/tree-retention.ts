/** What retention does with trees of runs, the same in every store. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Retention, RunRecord, RunStore } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

const DAY_S = 86_400

/** A store whose clock stands at `nowS`, float seconds since the epoch. */
export interface RetainingStore {
  readonly store: RunStore
  readonly nowS: number
  /** Drops what is due, in stores that do not do so whenever a run ends. */
  readonly sweep?: () => Promise<unknown>
}

type Open = (t: TestContext, retain: Retention) => Promise<RetainingStore>

/** Runs by their ids: `a` is a root, `a1` and `a2` are its children. */
class Forest {
  readonly #opened: RetainingStore
  #created = 0

  constructor(opened: RetainingStore) {
    this.#opened = opened
  }

  #records(id: string, age: number): RunRecord[] {
    const [root = ''] = id
    const place = id === root ? {} : { rootRunId: root, parentRunId: root }
    return sampleRun(id, { createdAt: this.#opened.nowS - age * DAY_S, ...place })
  }

  /** Starts a run `age` days ago; later ones without an age are newer. */
  async begin(id: string, age = 1 - (this.#created += 1) / 1_000): Promise<void> {
    await this.#opened.store.append(id, this.#records(id, age).slice(0, 2))
  }

  /** Ends a run `age` days ago. */
  async end(id: string, age = 0): Promise<void> {
    const ts = this.#opened.nowS - age * DAY_S
    const rest = this.#records(id, 0).slice(2).map((record) => ({ ...record, ts }))
    await this.#opened.store.append(id, rest)
    await this.#opened.sweep?.()
  }

  async add(...ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.begin(id)
    for (const id of ids.toReversed()) await this.end(id)
  }

  async assertHolds(ids: string): Promise<void> {
    const { heads } = await this.#opened.store.list({ limit: 100 })
    assert.equal(heads.map(({ details }) => details.run_id).sort().join(' '), ids)
  }
}

export function testTreeRetention(name: string, open: Open): void {
  const forest = async (t: TestContext, retain: Retention): Promise<[Forest, RunStore]> => {
    const opened = await open(t, retain)
    return [new Forest(opened), opened.store]
  }

  test(`${name}: trees are dropped as a whole, and their roots are counted`, async (t) => {
    const [runs] = await forest(t, { runs: 2 })
    await runs.add('a', 'a1', 'a2', 'a3')
    await runs.add('b', 'b1')
    await runs.assertHolds('a a1 a2 a3 b b1')
    await runs.add('c')
    await runs.assertHolds('b b1 c')
  })

  test(`${name}: a tree with a live run is kept, and dropped when that has ended`, async (t) => {
    const [runs] = await forest(t, { runs: 1, days: 9 })
    await runs.begin('a', 30)
    await runs.begin('a1', 30)
    await runs.begin('a2', 30)
    await runs.end('a1', 30)
    await runs.end('a', 30)
    await runs.add('b')
    await runs.assertHolds('a a1 a2 b')
    await runs.end('a2')
    await runs.assertHolds('b')
  })

  test(`${name}: the age of a tree is that of the end of its root`, async (t) => {
    const [runs] = await forest(t, { days: 9 })
    await runs.begin('a', 30)
    await runs.begin('a1', 30)
    await runs.begin('b', 30)
    await runs.begin('b1', 30)
    await runs.end('a1', 30)
    await runs.end('a', 1)
    await runs.end('b', 29)
    await runs.assertHolds('a a1 b b1')
    await runs.end('b1', 1)
    await runs.assertHolds('a a1')
  })

  test(`${name}: children without their root go by their own age`, async (t) => {
    const [runs, store] = await forest(t, { days: 9 })
    await runs.begin('a', 30)
    await runs.begin('a1', 30)
    await runs.begin('a2', 30)
    await runs.begin('a3', 30)
    await runs.end('a1', 30)
    await runs.end('a2', 1)
    await store.delete('a')
    await runs.add('b')
    await runs.assertHolds('a2 a3 b')
  })

  test(`${name}: children without their root go with the roots of their time`, async (t) => {
    const [runs, store] = await forest(t, { runs: 1 })
    await runs.add('a', 'a1')
    await store.delete('a')
    await runs.add('b')
    await runs.assertHolds('a1 b')
    await runs.add('c')
    await runs.assertHolds('c')
  })
}
