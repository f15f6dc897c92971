/**
 * Random histories of runs, forks, deletions, sweeps and deaths on one store of objects.
 * `RUNWRIGHT_RECLAIM_FIRST` and `RUNWRIGHT_RECLAIM_SEEDS`: the first seed, and how many (1, 150).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type ObjectStore, type RunRecord, type RunStore } from 'runwright/agent'
import { listAll } from '../../../lib/agent/testing/object-contract/suite.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { Random } from '../../helpers/random.js'
import { Died, objectsOfFiles, TestProcess, type Files } from './reclaim-process.js'

function randomFiles(random: Random): Files {
  const files = new Map<string, string>()
  for (let i = random.integer(0, 6); i > 0; i--) {
    files.set(`${random.integer(0, 2)}/${random.integer(0, 4)}`, `text ${random.integer(0, 12)}`)
  }
  return files
}

/** Returns the objects that the runs of a store refer to, read from their logs. */
async function referred(store: RunStore, trees: ReadonlyMap<string, Files>): Promise<Set<string>> {
  const hashes = new Set<string>()
  const { heads } = await store.list({ limit: 1_000 })
  for (const { details } of heads) {
    for (const record of await store.read(details.run_id, 0, 1_000)) {
      const id = record.kind === 'checkpoint' ? record.payload.checkpoint_id : baseOf(record)
      if (id === null) continue
      const files = trees.get(id)
      assert.ok(files !== undefined)
      for (const { hash } of objectsOfFiles(files)) hashes.add(hash)
    }
  }
  return hashes
}

function baseOf(record: RunRecord): string | null {
  return record.kind === 'run_created' ? (record.private?.fork?.checkpoint_id ?? null) : null
}

async function assertComplete(
  store: RunStore,
  objects: ObjectStore,
  trees: ReadonlyMap<string, Files>,
): Promise<void> {
  const needed = await referred(store, trees)
  const found = await objects.has([...needed])
  assert.deepEqual([...needed].filter((hash) => !found.has(hash)), [], 'nothing is lost')
}

const SEEDS = Number(process.env['RUNWRIGHT_RECLAIM_SEEDS'] ?? 150)
const FIRST = Number(process.env['RUNWRIGHT_RECLAIM_FIRST'] ?? 1)

test('what runs refer to stays, and nothing else, in random histories', async (t) => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    await history(seed).catch((error: unknown) => {
      t.diagnostic(`seed ${seed}`)
      throw error
    })
  }
})

async function history(seed: number): Promise<void> {
  const random = new Random(seed * 7_919)
  const store = new MemoryStore()
  await store.open()
  const trees = new Map<string, Files>()
  let runs = 0
  for (let life = 0; life < 4; life++) {
    const left = life < 3 ? random.integer(20, 400) : Infinity
    const living = new TestProcess(store, store.objects, random, left)
    const work: Promise<unknown>[] = []
    const begin = (act: () => Promise<unknown>): void => {
      work.push(act().catch((error: unknown) => {
        const { code } = error as { code?: string }
        const isGone = code === 'ERR_AGENT_CHECKPOINT' || code === 'ERR_AGENT_STORE_CORRUPT'
        if (!(error instanceof Died) && !isGone) throw error
      }))
    }
    for (let step = 0; step < 25 && !living.isDead; step++) {
      const { heads } = await store.list({ limit: 100 })
      const head = heads.length === 0 ? undefined : random.pick(heads)
      const kind = random.integer(0, 9)
      if (head === undefined || kind < 2) {
        const runId = `run-${++runs}`
        begin(() => living.store.append(runId, sampleRun(runId, { status: 'running' })))
      } else if (kind < 6) {
        const files = randomFiles(random)
        trees.set(objectsOfFiles(files).at(-1)?.hash ?? '', files)
        begin(() => living.checkpoint(head.details.run_id, files))
      } else if (kind < 7) {
        const base = head.details.checkpoint_id
        if (base !== null) begin(() => living.fork(`run-${++runs}`, base))
      } else if (kind < 8) begin(() => living.store.delete(head.details.run_id))
      else begin(() => living.reclaimer.sweep())
      if (random.chance(0.4)) await Promise.allSettled(work)
      if (random.chance(0.3)) await assertComplete(store, store.objects, trees)
    }
    await Promise.all(work)
    await living.reclaimer.close()
    await assertComplete(store, store.objects, trees)
  }
  const last = new TestProcess(store, store.objects, random)
  const { kept } = await last.reclaimer.sweep()
  const needed = await referred(store, trees)
  assert.deepEqual(await listAll(store.objects, 50), [...needed].sort(), `seed ${seed}`)
  assert.equal(kept, needed.size)
  assert.deepEqual(last.reclaimer.problems, [])
  await store.close()
}
