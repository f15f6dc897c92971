import type { RunRecord } from '../../../lib/agent/events.js'
import type { RunHead } from '../../../lib/agent/run-details.js'
import type { FileStore } from '../../../lib/agent/stores/file/file-store.js'

/** A store that broke a promise. */
export class Violation extends Error {}

/** What is known of one run: what a store acknowledged, and what it may have stored besides. */
export class ModelRun {
  readonly id: string
  /** Acknowledged: a store must return exactly these. */
  acked: RunRecord[] = []
  /** Appends without an answer, in order: each is stored wholly or not at all. */
  pending: RunRecord[][] = []
  /** Refused appends that may have been stored: see {@link StoreModel.keepsRefused}. */
  refused: RunRecord[][] = []
  /** A refused deletion that may have been stored. */
  isDeleteRefused = false
  /** A deletion without an answer. */
  isDeleting = false
  /** Deleted, durably. */
  isGone = false
  /** Damage took it: it is quarantined, or absent and reported. */
  isLost = false
  /** An answer left open what comes next; the next opening decides. */
  isUnclear = false

  constructor(id: string) {
    this.id = id
  }

  get last(): RunRecord | undefined {
    return this.pending.at(-1)?.at(-1) ?? this.acked.at(-1)
  }

  get hasEnded(): boolean {
    return this.last?.kind === 'run_end'
  }

  clone(): ModelRun {
    const copy = new ModelRun(this.id)
    Object.assign(copy, this, { acked: [...this.acked], pending: [...this.pending] })
    copy.refused = [...this.refused]
    return copy
  }
}

/** What a store must hold, and what it may hold. */
export class StoreModel {
  readonly runs: Map<string, ModelRun> = new Map()
  /** Ended runs that the store keeps; undefined for all. */
  readonly retained: number | undefined
  /** True once journal files were damaged. */
  isDamaged = false
  /** True once the index file was damaged, from which nothing may follow but a report. */
  isIndexDamaged = false
  /**
   * True when the last process ended on a disk that would not take back what it had written:
   * neither truncating nor syncing worked, to the end. No store can keep its promise then.
   */
  keepsRefused = false
  /** Counts runs and records, which makes each of them unique. */
  counter = 0

  constructor(retained: number | undefined) {
    this.retained = retained
  }

  clone(): StoreModel {
    const copy = new StoreModel(this.retained)
    for (const [id, run] of this.runs) copy.runs.set(id, run.clone())
    copy.isDamaged = this.isDamaged
    copy.isIndexDamaged = this.isIndexDamaged
    copy.keepsRefused = this.keepsRefused
    copy.counter = this.counter
    return copy
  }

  /** Live runs whose next record is known. */
  usable(): ModelRun[] {
    const usable: ModelRun[] = []
    for (const run of this.runs.values()) {
      if (!run.isGone && !run.isLost && !run.isUnclear && !run.isDeleting) usable.push(run)
    }
    return usable
  }

  /**
   * Compares a store with the model: what is acknowledged must be there. What was open is then
   * known: the model takes it over from the store.
   *
   * @throws {@link Violation}; the store's errors.
   */
  async verify(store: FileStore): Promise<void> {
    const damage = store.damage()
    const quarantined = new Map(damage.runs.map(({ runId, reason }) => [runId, reason]))
    const { heads } = await store.list({ limit: 10_000 })
    const listed = new Map<string, RunHead>()
    for (const head of heads) {
      const { run_id } = head.details
      if (listed.has(run_id)) throw new Violation(`${run_id} is listed twice`)
      listed.set(run_id, head)
      // A damaged id is reported as it is found.
      const isKnown = this.runs.has(run_id) || (this.isDamaged && quarantined.has(run_id))
      if (!isKnown) throw new Violation(`${run_id} never existed, and is listed`)
    }
    const runs = damage.runs.map(({ runId, reason }) => `${runId}: ${reason}`)
    const isReported = damage.runs.length > 0 || damage.files.length > 0
    if (!this.isDamaged && (this.isIndexDamaged ? runs.length > 0 : isReported)) {
      const what = [...runs, ...damage.files]
      throw new Violation(`damage is reported where there is none: ${what.join('; ')}`)
    }
    for (const run of this.runs.values()) {
      const reason = quarantined.get(run.id)
      const head = listed.get(run.id)
      if (reason !== undefined) {
        run.isLost = true
        run.pending = []
      } else if (head === undefined || head.problem !== undefined) this.#absent(run, isReported)
      else await this.#present(run, head, store)
    }
    if (this.keepsRefused) this.forgetRefused()
    // Expired runs may be deleted at any moment.
    if (this.retained === undefined) await verifyCounts(store, heads)
  }

  /** The refused appends of the last process are known to be absent, or were found. */
  forgetRefused(): void {
    for (const run of this.runs.values()) {
      run.refused = []
      run.isDeleteRefused = false
    }
    this.keepsRefused = false
  }

  #absent(run: ModelRun, isReported: boolean): void {
    const { id, acked } = run
    const mayBe =
      run.isGone ||
      run.isLost ||
      run.isDeleting ||
      (this.keepsRefused && run.isDeleteRefused) ||
      acked.length === 0 ||
      this.mayHaveExpired(run)
    if (!mayBe && !(this.isDamaged && isReported)) {
      throw new Violation(`${id} with ${acked.length} acknowledged records is gone`)
    }
    if (!mayBe) run.isLost = true
    else if (!run.isLost) run.isGone = true
    run.isDeleting = false
    run.isUnclear = false
    run.pending = []
  }

  async #present(run: ModelRun, { details }: RunHead, store: FileStore): Promise<void> {
    const records = await store.read(run.id, 0, 10_000)
    if (records.length === 0 && this.mayHaveExpired(run)) return this.#absent(run, false)
    if (details.last_seq !== records.length) {
      throw new Violation(`${run.id} has ${records.length} records, listed as ${details.last_seq}`)
    }
    if (run.isGone && !(this.keepsRefused && run.acked.length === 0)) {
      const isHarmless = this.isDamaged && records.at(-1)?.kind === 'run_end'
      if (isHarmless) return
      throw new Violation(`${run.id} was deleted, and is back as ${details.status}`)
    }
    let expected = [...run.acked]
    for (const batch of [[], ...run.pending]) {
      expected.push(...batch)
      if (expected.length >= records.length) break
    }
    if (this.keepsRefused) {
      expected = [...run.acked]
      addRefused(expected, records, [...run.refused, ...run.pending])
    }
    if (textOf(records) !== textOf(expected)) {
      const has = `it has ${seqs(records)}, acknowledged are ${seqs(run.acked)}`
      const open = run.pending.map(seqs).join(' and ')
      throw new Violation(`${run.id} is ${details.status}: ${has}, without an answer ${open}`)
    }
    run.isGone = false
    run.acked = expected
    run.pending = []
    run.isDeleting = false
    run.isUnclear = false
    run.isLost = false
  }

  /** May retention have deleted this run? */
  mayHaveExpired(run: ModelRun): boolean {
    if (this.retained === undefined || !this.#mayHaveEnded(run)) return false
    let newer = 0
    for (const other of this.runs.values()) {
      if (this.#mayHaveEnded(other) && createdAt(other) > createdAt(run)) newer += 1
    }
    return newer >= this.retained
  }

  #mayHaveEnded({ hasEnded, refused }: ModelRun): boolean {
    return hasEnded || (this.keepsRefused && refused.some((batch) => endsRun(batch)))
  }
}

/** Appends the refused batches that `records` has after `expected`. */
function addRefused(
  expected: RunRecord[],
  records: readonly RunRecord[],
  refused: readonly (readonly RunRecord[])[],
): void {
  for (;;) {
    const next = records[expected.length]
    const batch = next && refused.find(([first]) => first?.ts === next.ts)
    if (batch === undefined) return
    expected.push(...batch)
  }
}

/** Counts per status must be those of the list, which has quarantined runs besides. */
async function verifyCounts(store: FileStore, heads: readonly RunHead[]): Promise<void> {
  const expected = new Map<string, number>()
  for (const { details, problem } of heads) {
    if (problem !== undefined) continue
    expected.set(details.status, (expected.get(details.status) ?? 0) + 1)
  }
  for (const [status, count] of Object.entries(await store.counts())) {
    const listed = expected.get(status) ?? 0
    if (listed !== count) throw new Violation(`${count} runs are ${status}, ${listed} are listed`)
  }
}

function createdAt(run: ModelRun): number {
  return (run.acked[0] ?? run.pending[0]?.[0] ?? run.refused[0]?.[0])?.ts ?? 0
}

function endsRun(records: readonly RunRecord[]): boolean {
  return records.at(-1)?.kind === 'run_end'
}

function textOf(records: readonly RunRecord[]): string {
  return JSON.stringify(records)
}

function seqs(records: readonly RunRecord[]): string {
  if (records.length === 0) return 'nothing'
  return `${records[0]?.seq} to ${records.at(-1)?.seq} (${records.at(-1)?.kind})`
}
