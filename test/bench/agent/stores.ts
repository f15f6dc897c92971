/**
 * What stores cost: `node --conditions=runwright-source --import tsx test/bench/agent/stores.ts
 * [part of a name]…`. Every figure stands beside a floor that was measured in the same process.
 *
 * Records are about 300 octets, each append carries one. The floors write the same number of octets
 * with nothing around them: no checksum, no index, no head.
 */
import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  write,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileStore, type FileStoreOptions } from '../../../lib/agent/stores/file.js'
import { MemoryStore } from '../../../lib/agent/stores/memory.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import type { RunRecord } from '../../../lib/agent/events.js'
import type { RunStore } from '../../../lib/agent/store.js'

const ROUNDS = 5
const TEXT = 'x'.repeat(180)
const filters = process.argv.slice(2)

interface Figure {
  readonly median: number
  readonly low: number
  readonly high: number
}

function summarize(values: readonly number[]): Figure {
  const sorted = [...values].sort((a, b) => a - b)
  return {
    median: sorted[sorted.length >> 1] ?? NaN,
    low: sorted[0] ?? NaN,
    high: sorted.at(-1) ?? NaN,
  }
}

function show(name: string, { median, low, high }: Figure, unit: string, note = ''): void {
  const digits = median < 10 ? 2 : median < 100 ? 1 : 0
  const spread = `(${low.toFixed(digits)}..${high.toFixed(digits)})`
  console.log(`  ${name.padEnd(58)} ${median.toFixed(digits).padStart(9)} ${unit} ${spread} ${note}`)
}

const scratch: string[] = []
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  scratch.push(path)
  return path
}
process.on('exit', () => {
  for (const path of scratch) rmSync(path, { recursive: true, force: true })
})

async function openFile(options: Partial<FileStoreOptions> = {}): Promise<FileStore> {
  const store = new FileStore({ directory: folder(), ...options })
  await store.open()
  return store
}

/** A record that goes on from any run; only its seq is changed for each append. */
function logRecord(runId: string, seq: number): RunRecord {
  return { v: 1, run_id: runId, seq, iteration: 1, ts: 1_700_000_000, kind: 'log', payload: { level: 'info', message: TEXT } }
}
/** What the floors write: the same as text, made anew for each append. */
function line(seq: number): Buffer {
  return Buffer.from(`${JSON.stringify({ run: 'run-12', records: [logRecord('run-12', seq)] })}\n`)
}

/** Appends per second of so many runs that each wait for their own appends. */
async function throughput(store: RunStore, writers: number, total: number): Promise<number> {
  const each = Math.ceil(total / writers)
  const ids = Array.from({ length: writers }, (_, i) => `run-${i}`)
  await Promise.all(ids.map((id) => store.append(id, sampleRun(id, { status: 'pending', records: 1 }))))
  const started = performance.now()
  await Promise.all(
    ids.map(async (id) => {
      for (let seq = 2; seq < each + 2; seq++) await store.append(id, [logRecord(id, seq)])
    }),
  )
  return (each * writers) / ((performance.now() - started) / 1000)
}

function floorSyncEach(total: number): number {
  const fd = openSync(join(folder(), 'floor'), 'w')
  const started = performance.now()
  for (let i = 0; i < total; i++) {
    writeSync(fd, line(i))
    fdatasyncSync(fd)
  }
  const rate = total / ((performance.now() - started) / 1000)
  closeSync(fd)
  return rate
}

/** Group commit and nothing else: writers wait, one write and one sync for all who do. */
async function floorGroupCommit(writers: number, total: number): Promise<number> {
  const fd = openSync(join(folder(), 'floor'), 'w')
  let waiting: { readonly data: Buffer; readonly done: () => void }[] = []
  let busy = false
  const flush = (): void => {
    const group = waiting
    if (group.length === 0) {
      busy = false
      return
    }
    waiting = []
    write(fd, Buffer.concat(group.map(({ data }) => data)), (error) => {
      if (error !== null) throw error
      fdatasync(fd, (failure) => {
        if (failure !== null) throw failure
        for (const { done } of group) done()
        setImmediate(flush)
      })
    })
  }
  const append = (seq: number): Promise<void> =>
    new Promise((done) => {
      waiting.push({ data: line(seq), done })
      if (!busy) {
        busy = true
        setImmediate(flush)
      }
    })
  const each = Math.ceil(total / writers)
  const started = performance.now()
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (let i = 0; i < each; i++) await append(i)
    }),
  )
  const rate = (each * writers) / ((performance.now() - started) / 1000)
  closeSync(fd)
  return rate
}

async function measure(count: number, once: () => Promise<number> | number): Promise<Figure> {
  const values: number[] = []
  for (let i = 0; i < count; i++) values.push(await once())
  return summarize(values)
}

const benches: Readonly<Record<string, () => Promise<void>>> = {
  async 'append throughput'() {
    const each = await measure(ROUNDS, () => floorSyncEach(3_000))
    show('floor: writeSync + fdatasyncSync for each', each, 'events/s')
    for (const [writers, total] of [[1, 3_000], [64, 100_000], [1024, 200_000]] as const) {
      const floors: number[] = []
      const ours: number[] = []
      for (let i = 0; i < ROUNDS; i++) {
        floors.push(await floorGroupCommit(writers, total))
        await using store = await openFile()
        ours.push(await throughput(store, writers, total))
      }
      const floor = summarize(floors)
      const rate = summarize(ours)
      show(`floor: bare group commit, ${writers} writers`, floor, 'events/s')
      const ratios = `${(rate.median / each.median).toFixed(1)}x sync each, ${(rate.median / floor.median).toFixed(2)}x floor`
      show(`FileStore, ${writers} writers`, rate, 'events/s', ratios)
    }
    for (const writers of [1, 64]) {
      const rate = await measure(ROUNDS, async () => {
        await using store = await openFile({ sync: 'none' })
        return await throughput(store, writers, 100_000)
      })
      show(`FileStore without sync, ${writers} writers`, rate, 'events/s', `${(1e6 / rate.median).toFixed(1)} us each`)
    }
    const memory = await measure(ROUNDS, async () => {
      await using store = new MemoryStore()
      await store.open()
      return await throughput(store, 64, 200_000)
    })
    show('MemoryStore, 64 writers', memory, 'events/s', `${(1e6 / memory.median).toFixed(2)} us each`)
  },

  async 'cost by length of the log'() {
    for (const sync of ['group', 'none'] as const) {
      for (const length of [10, 1_000, 10_000]) {
        const figure = await measure(ROUNDS, async () => {
          await using store = await openFile({ sync })
          await store.append('run-0', sampleRun('run-0', { status: 'running', records: length }))
          const started = performance.now()
          for (let i = 1; i <= 500; i++) await store.append('run-0', [logRecord('run-0', length + i)])
          return ((performance.now() - started) / 500) * 1_000
        })
        show(`one append behind ${length} events, sync ${sync}`, figure, 'us')
      }
    }
  },

  async 'replay of one run'() {
    await using store = await openFile()
    await store.append('alone', sampleRun('alone', { records: 1_000, text: TEXT }))
    const runs = Array.from({ length: 64 }, (_, i) => sampleRun(`run-${i}`, { records: 1_000, text: TEXT }))
    for (let seq = 0; seq < 1_000; seq++) {
      await Promise.all(runs.map((records, i) => store.append(`run-${i}`, records.slice(seq, seq + 1))))
    }
    for (const id of ['alone', 'run-7']) {
      const figure = await measure(20, async () => {
        const started = performance.now()
        const records = await store.read(id, 0, 10_000)
        if (records.length !== 1_000) throw new Error('records are missing')
        return performance.now() - started
      })
      show(`1000 events of a run ${id === 'alone' ? 'by itself' : 'among 64 others'}`, figure, 'ms')
    }
  },

  async 'reopen 1000 runs of 100 events'() {
    const directory = folder()
    const store = await openFile({ directory })
    const runs = Array.from({ length: 1_000 }, (_, i) => sampleRun(`run-${i}`, { records: 100, text: TEXT }))
    for (let at = 0; at < 100; at += 5) {
      await Promise.all(runs.map((records, i) => store.append(`run-${i}`, records.slice(at, at + 5))))
    }
    await store.close()
    await reopen('with a checkpoint', directory)
    await reopen('from the journal alone', directory, (path) => rmSync(join(path, 'checkpoint')))
  },

  async 'reopen 100 000 ended runs'() {
    const directory = folder()
    const store = await openFile({ directory })
    for (let at = 0; at < 100_000; at += 1_000) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, i) => {
          const id = `0190f3a2-7c4e-7000-8000-${String(at + i).padStart(12, '0')}`
          return store.append(id, sampleRun(id, { createdAt: 1_700_000_000 + at + i, key: id, ownerId: 'me' }))
        }),
      )
    }
    const closing = performance.now()
    await store.close()
    show('close, with the checkpoint', summarize([performance.now() - closing]), 'ms')
    await reopen('with a checkpoint', directory)
    await listPages('FileStore', await openFile({ directory }))
    await reopen('from the journal alone', directory, (path) => rmSync(join(path, 'checkpoint')), 1)
  },

  async 'list 100 000 runs in memory'() {
    const store = new MemoryStore({ retain: {} })
    await store.open()
    for (let i = 0; i < 100_000; i++) {
      const id = `run-${String(i).padStart(6, '0')}`
      await store.append(id, sampleRun(id, { createdAt: 1_700_000_000 + i }))
    }
    await listPages('MemoryStore', store)
  },
}

async function listPages(name: string, store: RunStore): Promise<void> {
  const { next } = await store.list({ limit: 50_000 })
  const cases = [
    ['the first page of 50', { limit: 50 }],
    ['a page of 50 from the middle', { limit: 50, cursor: next ?? '' }],
    ['a page of 50 by a goal that no run has', { limit: 50, goal: 'none' }],
    ['a page of 50 before a time', { limit: 50, createdBefore: 1_700_050_000 }],
  ] as const
  for (const [what, query] of cases) {
    const figure = await measure(20, async () => {
      const started = performance.now()
      await store.list(query)
      return performance.now() - started
    })
    show(`${name}: ${what}`, figure, 'ms')
  }
  await store.close()
}

async function reopen(
  what: string,
  directory: string,
  before: (path: string) => void = () => {},
  rounds = ROUNDS,
): Promise<void> {
  const figure = await measure(rounds, async () => {
    before(directory)
    const store = new FileStore({ directory })
    const started = performance.now()
    await store.open()
    const took = performance.now() - started
    await store.compact()
    await store.close()
    return took
  })
  show(`open ${what}`, figure, 'ms')
}

for (const [name, run] of Object.entries(benches)) {
  if (filters.length > 0 && !filters.some((filter) => name.includes(filter))) continue
  console.log(name)
  await run()
}
