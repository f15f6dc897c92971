import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileStore, StoreError, type StoredObject } from 'runwright/agent'
import { blob } from '../../../lib/agent/testing/object-contract/suite.js'
import { Random } from '../../helpers/random.js'
import { SimulatedDisk, SimulatedProcess, type Plan } from './simulated-disk.js'

const CODES = ['ENOSPC', 'EIO', 'EDQUOT'] as const
const BLOBS = Array.from({ length: 20 }, (_, i) => blob(`content ${i} `.repeat(1 + i * 30)))

/** What a store must hold: what it acknowledged, and nobody has removed since. */
class Model {
  readonly held = new Set<StoredObject>()

  /** Checks that each blob is whole or not there, and that those held are there. */
  async check({ objects }: FileStore, title: string): Promise<void> {
    const found = await objects.has(BLOBS.map(({ hash }) => hash))
    for (const one of BLOBS) {
      const content = await objects.get(one.hash)
      if (this.held.has(one)) assert.ok(content !== null, `${title}: ${one.hash} is lost`)
      if (content !== null) assert.ok(Buffer.from(one.content).equals(content), title)
      // What may not survive is not found, although it is there.
      if (found.has(one.hash)) assert.ok(content !== null, title)
      else assert.ok(!this.held.has(one), title)
    }
  }
}

let tokens = 0

interface Opened {
  readonly process: SimulatedProcess
  readonly store: FileStore
}

async function open(disk: SimulatedDisk, random: Random, plan: Plan): Promise<Opened | null> {
  const process = new SimulatedProcess(disk, random, plan)
  const holder = {
    pid: 2 ** 22 + 1, started: null, boot: 'boot', namespace: 'here', host: 'host',
    token: `token-${++tokens}`,
  }
  const store = new FileStore({ directory: '/data/runs', onWarning: () => {} }, process, holder)
  try {
    await store.open()
    return { process, store }
  } catch (error) {
    assert.ok(error instanceof StoreError || process.isDead, String(error))
    process.kill()
    return null
  }
}

/** Random calls at once, each of which may fail; what succeeds is noted. */
async function work(store: FileStore, model: Model, random: Random): Promise<void> {
  const { objects } = store
  const calls: Promise<void>[] = []
  // What a removal may meet is not asked for at the same time.
  const doomed = new Set(BLOBS.filter(() => random.chance(0.15)))
  const rest = BLOBS.filter((one) => !doomed.has(one))
  for (let i = random.integer(1, 6); i > 0; i--) {
    const some = rest.filter(() => random.chance(0.4))
    const hashes = some.map(({ hash }) => hash)
    const ask = async (): Promise<void> => {
      const found = await objects.has(hashes)
      for (const one of some) if (found.has(one.hash)) model.held.add(one)
    }
    const put = async (): Promise<void> => {
      await objects.put(some)
      for (const one of some) model.held.add(one)
    }
    calls.push(random.chance(0.6) ? put() : ask())
  }
  for (const one of doomed) model.held.delete(one)
  calls.push(objects.delete([...doomed].map(({ hash }) => hash), 0))
  for (const outcome of await Promise.allSettled(calls)) {
    if (outcome.status === 'fulfilled') continue
    const error: unknown = outcome.reason
    assert.ok(error instanceof StoreError, String(error))
    const codes = ['ERR_AGENT_STORE_UNAVAILABLE', 'ERR_AGENT_STORE_LOCKED', 'ERR_AGENT_STORE']
    assert.ok(codes.includes(error.code), error.message)
  }
}

async function playCase(seed: number): Promise<void> {
  const random = new Random(seed * 7_919)
  const disk = new SimulatedDisk('/data')
  const model = new Model()
  for (let life = 1; life <= 4; life++) {
    const title = `seed ${seed}, life ${life}`
    const [first, chance] = [random.integer(1, 120), random.pick([0.02, 0.1, 0.5])]
    const ends = random.pick(['crash', 'power', 'close'] as const)
    const plan: Plan = ({ number, path }) => {
      // Faults of the journal and the lock have tests of their own.
      if (!path.includes('/objects') || number < first) return null
      if (ends !== 'close' && random.chance(0.01)) {
        return { kind: 'crash', partly: random.chance(0.5) }
      }
      if (!random.chance(chance)) return null
      return { kind: 'error', code: random.pick(CODES), partly: random.chance(0.5) }
    }
    const opened = await open(disk, random, plan)
    if (opened !== null) {
      const { process, store } = opened
      // So many packs of one size that they are rewritten.
      const single = random.chance(0.5) ? BLOBS : []
      for (const one of single) {
        if (await store.objects.put([one]).then(() => true, () => false)) model.held.add(one)
      }
      for (let round = 0; round < 4 && !process.isDead; round++) await work(store, model, random)
      if (!process.isDead) {
        process.heal()
        await model.check(store, `${title}, before its end`)
      }
      if (ends !== 'close') process.kill()
      await store.close().catch(() => undefined)
      assert.equal(process.misuse, null, title)
    }
    if (ends === 'power') disk.losePower(random)
    const again = await open(disk, random, () => null)
    assert.ok(again !== null, title)
    await model.check(again.store, `${title}, after ${ends}`)
    await again.store.objects.put(BLOBS.slice(0, 3))
    for (const one of BLOBS.slice(0, 3)) model.held.add(one)
    const left = [...disk.names.keys()].filter((path) => path.endsWith('.new'))
    assert.deepEqual(left, [], 'nothing unfinished is left')
    assert.deepEqual(again.store.damage(), { runs: [], files: [] })
    await again.store.close()
    assert.equal(again.process.openFiles.filter((path) => path.includes('objects')).length, 0)
  }
}

test('what a process that died has left is found only once it is durable', async () => {
  const disk = new SimulatedDisk('/data')
  const [one] = BLOBS as [StoredObject]
  let renamed = false
  const first = await open(disk, new Random(1), ({ kind, path }) => {
    if (kind === 'rename' && path.includes('/objects/')) renamed = true
    return renamed && kind === 'syncFolder' ? { kind: 'crash', partly: false } : null
  })
  await assert.rejects(first?.store.objects.put([one]) as Promise<void>)
  await first?.store.close().catch(() => undefined)
  const second = await open(disk, new Random(1), () => null)
  assert.equal((await second?.store.objects.has([one.hash]))?.size, 1)
  for (let seed = 1; seed <= 20; seed++) {
    const copy = disk.clone('/data')
    copy.losePower(new Random(seed * 7_919))
    const { store } = (await open(copy, new Random(1), () => null)) as Opened
    assert.ok((await store.objects.get(one.hash)) !== null, `seed ${seed}`)
    await store.close()
  }
  await second?.store.close()
})

for (const [name, seeds] of [['a few', 5], ['many', 250]] as const) {
  test(`acknowledged blobs survive faults, crashes and losses of power in ${name} cases`, async () => {
    for (let seed = 1; seed <= seeds; seed++) await playCase(seed)
  })
}
