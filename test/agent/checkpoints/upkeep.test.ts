/** Which copies of runs are kept: a pure decision by the head of each run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, StoreError, type RunHead } from 'runwright/agent'
import { Upkeep } from '../../../lib/agent/checkpoints/upkeep.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { ManualClock } from 'runwright/agent/testing'
import { nextTurn } from '../../../lib/internal/time.js'

type Details = Partial<RunHead['details']>

const HEADS: Readonly<Record<string, Details | StoreError>> = {
  live: { status: 'running' },
  failed: { status: 'failed' },
  pending: { status: 'achieved', changes: 'pending' },
  applied: { status: 'achieved', changes: 'applied' },
  discarded: { status: 'achieved', changes: 'discarded' },
  attempting: { role: 'attempt', status: 'awaiting_human' },
  attempt: { role: 'attempt', status: 'achieved', changes: 'pending' },
  delegate: { role: 'delegate', status: 'failed' },
  damaged: new StoreError('ERR_AGENT_STORE_CORRUPT', 'it is damaged'),
  newer: new StoreError('ERR_AGENT_STORE_VERSION', 'a newer version wrote it'),
}

test('copies are kept of runs that may need them, and one unreadable run hinders none', async () => {
  const store = new MemoryStore()
  await store.open()
  await store.append('sample', sampleRun('sample'))
  const head = (await store.head('sample')) as RunHead
  store.head = (runId) => {
    const known = HEADS[runId]
    if (known instanceof StoreError) return Promise.reject(known)
    return Promise.resolve(known === undefined ? null : {
      ...head, details: { ...head.details, run_id: runId, ...known },
    })
  }
  const names = [...Object.keys(HEADS), 'gone']
  const decide = async (isWanted: (runId: string) => Promise<boolean>): Promise<string[]> => {
    const kept: string[] = []
    for (const name of names) if (await isWanted(name)) kept.push(name)
    return kept
  }
  const kept = await new Promise<readonly string[][]>((resolve, reject) => {
    const found: string[][] = []
    const sweep = async (isWanted: (runId: string) => Promise<boolean>): Promise<void> => {
      found.push(await decide(isWanted).catch((error: unknown) => (reject(error), [])))
      if (found.length === 2) resolve(found)
    }
    new Upkeep({ store, use: null, isolation: { sweep }, sealed: { sweep } }).start()
  })
  assert.deepEqual(kept, [
    ['live', 'failed', 'pending', 'attempting', 'damaged', 'newer'],
    ['live', 'attempting', 'damaged', 'newer'],
  ])
})

/** An upkeep whose time and sweeps of copies a test controls. */
async function timed(sweep: () => Promise<void>): Promise<{
  readonly clock: ManualClock
  readonly upkeep: Upkeep
}> {
  const clock = new ManualClock()
  const upkeep = new Upkeep({
    store: new MemoryStore(), use: null, isolation: { sweep }, sealed: { sweep: async () => {} },
    schedule: (callback, ms) => clock.setTimeout(callback, ms), now: () => clock.now(),
  })
  upkeep.start()
  await settled()
  return { clock, upkeep }
}

/** Lets sweeps that do not wait come to their end. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn()
}

test('copies are swept a second after runs were removed, once for all of them', async () => {
  let sweeps = 0
  const { clock, upkeep } = await timed(async () => void (sweeps += 1))
  assert.equal(sweeps, 1, 'at the start')
  for (let run = 0; run < 1_000; run++) upkeep.removed(run % 2 === 0)
  clock.advance(999)
  await settled()
  assert.equal(sweeps, 1)
  clock.advance(1)
  await settled()
  assert.deepEqual([sweeps, clock.pending], [2, 0])
  await upkeep.close()
  upkeep.removed(true)
  assert.equal(clock.pending, 0)
})

test('a sweep of copies takes a small part of the time, however often runs are removed', async () => {
  let [sweeps, tookMs] = [0, 0]
  const { clock, upkeep } = await timed(async () => {
    sweeps += 1
    if (tookMs > 0) clock.advance(tookMs)
  })
  tookMs = 500
  upkeep.removed(true)
  clock.advance(1_000)
  await settled()
  assert.equal(sweeps, 2)
  for (let second = 0; second < 9; second++) {
    upkeep.removed(false)
    clock.advance(1_000)
    await settled()
  }
  assert.equal(sweeps, 2, 'it rests 20 times as long as it took')
  clock.advance(1_000)
  await settled()
  assert.equal(sweeps, 3)
  await upkeep.close()
})

test('a sweep of copies that fails is made again, and named once', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  let [sweeps, fails] = [0, true]
  const { clock, upkeep } = await timed(async () => {
    sweeps += 1
    if (fails) throw new Error('EIO')
  })
  for (let minute = 1; minute <= 3; minute++) {
    assert.equal(sweeps, minute)
    clock.advance(60_000)
    await settled()
  }
  fails = false
  clock.advance(60_000)
  await settled()
  assert.deepEqual([sweeps, clock.pending], [5, 0])
  const told = 'copies of runs that are over were not removed: EIO'
  assert.deepEqual(warnings.filter((text) => text === told), [told])
  await upkeep.close()
})
