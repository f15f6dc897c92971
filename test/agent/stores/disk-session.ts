import { StoreError } from '../../../lib/agent/errors.js'
import type { RunRecord } from '../../../lib/agent/events.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import type { LockHolder } from '../../../lib/agent/stores/file/lock.js'
import { Random } from '../../helpers/random.js'
import { ModelRun, Violation, type StoreModel } from './disk-model.js'
import { smallRecord } from './disk-records.js'
import { SimulatedProcess, type Plan, type SimulatedDisk } from './simulated-disk.js'

/** The data directory on the simulated disk, in a root that exists. */
export const ROOT = '/srv'
export const DIRECTORY = '/srv/data'

/** Turns of the event loop after which a call counts as stuck. */
const MANY_TURNS = 20_000

/** What a session needs to know. */
export interface SessionOptions {
  readonly disk: SimulatedDisk
  readonly model: StoreModel
  readonly holder: LockHolder
  readonly seed: number
  /** Faults; null for a disk that works. */
  readonly plan: Plan | null
  readonly segmentBytes: number
  readonly isFaulty: boolean
  readonly trace: Trace
}

/** Receives what happens, line by line. */
export type Trace = (line: string) => void

/** One process with one store, from its opening to its end. */
export class Session {
  readonly process: SimulatedProcess
  readonly store: FileStore
  readonly model: StoreModel
  readonly token: string
  /** Set once another process has replaced this one: the model that holds from then on. */
  replacedBy: StoreModel | null = null
  /** True while operations may fail. */
  isFaulty: boolean
  readonly #random: Random
  readonly #trace: Trace
  #inFlight = new Set<Promise<void>>()
  #violation: Violation | null = null

  constructor({ disk, model, holder, seed, plan, ...options }: SessionOptions) {
    const { segmentBytes, isFaulty, trace } = options
    this.model = model
    this.token = holder.token
    this.isFaulty = isFaulty
    this.#trace = trace
    this.#random = new Random(seed)
    this.process = new SimulatedProcess(disk, new Random(seed ^ 0x5bd1e995), plan ?? (() => null))
    const { retained } = model
    this.store = new FileStore(
      {
        directory: DIRECTORY,
        segmentBytes,
        ...(retained !== undefined && { retain: { runs: retained } }),
        onWarning: (error) => this.#warned(error),
        clock: { now: () => 1_800_000_000_000, setTimeout: () => ({ cancel: () => {} }) },
      },
      this.process,
      holder,
    )
  }

  /** True when this process can no longer be held to anything but its answers. */
  get #isOver(): boolean {
    return this.process.isDead || this.replacedBy !== null
  }

  /** Opens the store; false when that failed for a reason. */
  async open(): Promise<boolean> {
    try {
      await this.#settled(this.store.open(), 'open()')
      return true
    } catch (error) {
      if (error instanceof Violation) throw error
      this.#trace(`open: ${String(error)}`)
      if (this.#isOver) return false
      if (!(error instanceof StoreError)) throw violation('open() threw no StoreError', error)
      if (!this.isFaulty) throw violation('open() failed on a disk that works', error)
      return false
    }
  }

  /** Compares the store with the model, once nothing is in flight; false if the disk failed. */
  async verify(): Promise<boolean> {
    await this.drain()
    if (this.#isOver) return false
    try {
      await this.#settled(this.model.verify(this.store), 'verify')
      return true
    } catch (error) {
      if (error instanceof Violation) throw error
      if (this.#isOver) return false
      if (this.isFaulty && isUnavailable(error)) return false
      throw violation('reading failed', error)
    }
  }

  /** Several groups of calls at a time, some of which overlap. */
  async work(bursts: number): Promise<void> {
    for (let i = 0; i < bursts && !this.process.isDead; i++) {
      const calls = this.#random.integer(1, 8)
      for (let call = 0; call < calls; call++) this.#call()
      if (this.#random.chance(0.7)) await this.drain()
      else await turn()
      this.#assertFine()
    }
  }

  /** Ends all faults. The store must then work as if there had been none. */
  async heal(): Promise<void> {
    this.process.heal()
    await this.drain()
    // What fails from now on has no excuse, except work that began before.
    do for (let i = 0; i < 3; i++) await turn()
    while (!this.process.isQuiet)
    this.isFaulty = false
    if (this.#isOver) return
    this.#trace('healed')
    await this.verify()
    this.#create()
    for (const run of this.model.usable().slice(-4)) if (!run.hasEnded) this.#append(run)
    await this.drain()
    this.#run(this.store.check(), 'check')
    await this.verify()
    this.#assertFine()
  }

  /** Closes the store; afterwards no file may be open. */
  async close(): Promise<void> {
    await this.drain()
    this.#noteRefusals()
    try {
      await this.#settled(this.store.close(), 'close()')
    } catch (error) {
      if (error instanceof Violation) throw error
      if (!this.isFaulty && !this.#isOver) throw violation('close() failed', error)
    }
    this.#assertFine()
    const { openFiles, misuse } = this.process
    if (openFiles.length > 0) throw new Violation(`left open: ${openFiles.join(', ')}`)
    if (misuse !== null) throw new Violation(misuse)
    this.process.kill()
  }

  /** The process dies; what it was doing gets no answer. */
  async kill(): Promise<void> {
    this.process.kill()
    await this.drain()
    this.#noteRefusals()
    await this.abandon()
    this.#assertFine()
  }

  /** The process dies, and nobody asks for its answers. */
  async abandon(): Promise<void> {
    this.process.kill()
    // Frees the timers that a dead process would not have.
    await this.#settled(this.store.close(), 'close()').catch(() => {})
  }

  #noteRefusals(): void {
    const couldNot = this.isFaulty && this.replacedBy === null && this.process.couldNotTakeBack
    if (couldNot) this.model.keepsRefused = true
    // A process that ended before the first look leaves open what the one before it did.
    else if (!this.model.keepsRefused) this.model.forgetRefused()
  }

  /** Resolves once every call has its answer. */
  async drain(): Promise<void> {
    await this.#settled(Promise.all(this.#inFlight), 'a call')
    this.#assertFine()
  }

  async #settled<T>(promise: Promise<T>, what: string): Promise<T> {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    promise.then(settled, settled)
    for (let turns = 0; !isSettled; turns++) {
      if (turns > MANY_TURNS) throw new Violation(`${what} never ended`)
      await turn()
    }
    return await promise
  }

  #assertFine(): void {
    if (this.#violation !== null) throw this.#violation
  }

  #warned(error: StoreError): void {
    this.#trace(`warning: ${error.message}`)
    const { isDamaged, isIndexDamaged } = this.model
    if (this.isFaulty || this.#isOver || isDamaged || isIndexDamaged) return
    this.#violation ??= violation('a warning on a disk that works', error)
  }

  /** Starts a call whose answer `#inFlight` awaits. */
  #run(answer: Promise<void>, name: string): void {
    const call = answer
      .catch((error: unknown) => {
        if (error instanceof Violation) this.#violation ??= error
        else this.#refused(error, name)
      })
      .finally(() => this.#inFlight.delete(call))
    this.#inFlight.add(call)
  }

  /** Judges an error for which a call has no rule of its own. */
  #refused(error: unknown, name: string): void {
    this.#trace(`${name}: ${String(error)}`)
    if (this.#isOver || (this.isFaulty && isUnavailable(error))) return
    this.#violation ??= violation(`${name} failed`, error)
  }

  #call(): void {
    const random = this.#random
    const usable = this.model.usable()
    const live = usable.filter((run) => !run.hasEnded)
    const ended = usable.filter((run) => run.hasEnded && run.pending.length === 0)
    const way = random.next()
    if (way < 0.2 || usable.length === 0) this.#create()
    else if (way < 0.7 && live.length > 0) this.#append(random.pick(live))
    else if (way < 0.78 && ended.length > 0) this.#delete(random.pick(ended))
    else if (way < 0.8) this.#run(this.#compact(), 'compact')
    else if (way < 0.81) this.#run(this.store.check(), 'check')
    else this.#run(this.#read(random.pick(usable)), 'read')
  }

  #create(): void {
    const { model } = this
    const run = new ModelRun(`run-${++model.counter}`)
    model.runs.set(run.id, run)
    this.#append(run)
  }

  #append(run: ModelRun): void {
    const count = this.#random.integer(1, 3)
    const batch: RunRecord[] = []
    let seq = run.last?.seq ?? 0
    while (batch.length < count && batch.at(-1)?.kind !== 'run_end') {
      batch.push(this.#record(run, ++seq))
    }
    run.pending.push(batch)
    this.#trace(`append ${nameOf(run, batch)} …`)
    this.#run(this.#appendBatch(run, batch), `append ${run.id}`)
  }

  #record(run: ModelRun, seq: number): RunRecord {
    const random = this.#random
    const ts = ++this.model.counter
    if (seq > 2 && random.chance(0.15)) return smallRecord(run.id, seq, ts, null)
    const long = random.chance(0.01) ? 70_000 : 1_500
    return smallRecord(run.id, seq, ts, random.chance(0.1) ? long : random.integer(0, 200))
  }

  async #appendBatch(run: ModelRun, batch: RunRecord[]): Promise<void> {
    try {
      await this.store.append(run.id, batch)
    } catch (error) {
      const { code } = error as StoreError
      this.#trace(`append ${nameOf(run, batch)}: ${String(error)}`)
      // Without an answer, or with one that leaves it open.
      if (this.#isOver || code === 'ERR_AGENT_STORE_LOCKED') {
        run.isUnclear = true
        if (!this.#isOver) throw error
        return
      }
      run.pending = run.pending.filter((other) => other !== batch)
      run.refused.push(batch)
      if (run.acked.length + run.pending.length === 0) run.isGone = true
      // Refused as a consequence: the append before it was.
      if (code === 'ERR_AGENT_SEQ_CONFLICT' && this.isFaulty) return
      if (code === 'ERR_AGENT_STORE_CORRUPT' && this.model.isDamaged) {
        run.isLost = true
        return
      }
      throw error
    }
    // The program goes on after the death of its process, but nobody gets its answers.
    if (this.process.isDead) {
      run.isUnclear = true
      return
    }
    if (this.replacedBy !== null) return this.#assertStored(run, batch)
    if (run.pending[0] !== batch) {
      throw new Violation(`${run.id}: ${batch[0]?.seq} acknowledged out of order`)
    }
    run.pending.shift()
    run.acked.push(...batch)
    this.#trace(`append ${nameOf(run, batch)} acknowledged`)
  }

  /** A process that was replaced may acknowledge only what its successor has found. */
  #assertStored(run: ModelRun, batch: readonly RunRecord[]): void {
    const last = batch.at(-1) as RunRecord
    const found = this.replacedBy?.runs.get(run.id)
    if (found?.isGone === true && this.model.retained !== undefined) return
    if (found?.acked[last.seq - 1]?.ts === last.ts) return
    throw new Violation(`${run.id}: ${last.seq} was acknowledged by a process that was replaced`)
  }

  #delete(run: ModelRun): void {
    run.isDeleting = true
    this.#run(this.#deleteRun(run), `delete ${run.id}`)
  }

  async #deleteRun(run: ModelRun): Promise<void> {
    try {
      await this.store.delete(run.id)
    } catch (error) {
      if (this.#isOver) return
      const isOpen = (error as StoreError).code === 'ERR_AGENT_STORE_LOCKED'
      // A run that has expired meanwhile may be gone nevertheless.
      if (!isOpen && !this.model.mayHaveExpired(run)) run.isDeleting = false
      run.isDeleteRefused = true
      throw error
    }
    if (this.process.isDead) return
    if (this.replacedBy !== null) {
      if (this.replacedBy.runs.get(run.id)?.isGone === true) return
      throw new Violation(`${run.id} was deleted by a process that was replaced`)
    }
    run.isDeleting = false
    run.isGone = true
    this.#trace(`delete ${run.id} acknowledged`)
  }

  async #compact(): Promise<void> {
    await this.store.compact()
  }

  /** Reads a page; it must show what was acknowledged, and perhaps what is about to be. */
  async #read(run: ModelRun): Promise<void> {
    const { acked } = run
    const least = acked.length
    const after = this.#random.integer(0, least)
    let records: readonly RunRecord[]
    try {
      records = await this.store.read(run.id, after, 10_000)
    } catch (error) {
      const isCorrupt = (error as StoreError).code === 'ERR_AGENT_STORE_CORRUPT'
      if (!isCorrupt || !this.model.isDamaged) throw error
      run.isLost = true
      return
    }
    if (this.#isOver || run.isGone || run.isDeleting) return
    if (records.length === 0 && this.model.mayHaveExpired(run)) return
    const expected = [...run.acked, ...run.pending.flat()]
    const isRight = records.every((record, i) => record.ts === expected[after + i]?.ts)
    if (isRight && records.length >= least - after) return
    throw new Violation(
      `${run.id}: read after ${after} returned ${records.length} records of at least ${least}`,
    )
  }
}

function nameOf({ id }: ModelRun, batch: readonly RunRecord[]): string {
  const last = batch.at(-1) as RunRecord
  return `${id} ${batch[0]?.seq}-${last.seq}${last.kind === 'run_end' ? ' (end)' : ''}`
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function violation(what: string, error: unknown): Violation {
  return new Violation(`${what}: ${String((error as Error)?.message ?? error)}`, { cause: error })
}

function isUnavailable(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'ERR_AGENT_STORE_UNAVAILABLE'
}
