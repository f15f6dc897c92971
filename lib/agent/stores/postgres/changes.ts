/**
 * How processes hear of one another: notifications sent after commits, one at a time so that they
 * carry whatever has happened meanwhile, and a poll as the safety net. A notification is a hint to
 * look; what is true stands in the tables.
 *
 * @module
 */
import { backoffDelay, type Backoff } from '../../../internal/backoff.js'
import type { LogEnd } from '../../shared-store.js'
import type { Database } from './database.js'
import type { PgPool } from './pool.js'
import type { Pulse } from './pulse.js'

/** Octets of ids in one notification, of which PostgreSQL takes less than 8000 in all. */
const IDS_BYTES = 7_000
/** Octets around an id: quotes, a comma, the end of a log. */
const AROUND_ID_BYTES = 16
const LISTEN_BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }

/** What goes on the channel. */
interface Message {
  /** The process that sent it, which heard it before it was sent. */
  readonly from: string
  /** Ends of logs that have grown. */
  readonly ends?: Readonly<Record<string, number>>
  readonly deleted?: readonly string[]
  readonly aborts?: readonly string[]
  /** There may be something to claim. */
  readonly claimable?: boolean
}

/** Options of {@link Changes}. */
export interface ChangesOptions {
  readonly database: Database
  /** Is lent the connection that listens, and finds out with its heartbeats whether that still stands. */
  readonly pulse: Pulse
  /** Where the listening connection comes from; null to poll only. */
  readonly listen: PgPool | null
  /** Quoted name of the schema. */
  readonly schema: string
  readonly workerId: string
  /** Milliseconds between two looks at the watched runs, when nothing is heard. */
  readonly pollMs: number
  /** Something may be claimed, here or anywhere. */
  readonly claimable: () => void
  /** Somebody elsewhere asked for the end of these runs. */
  readonly abortsWanted: (runIds: readonly string[]) => void
}

/** Tells other processes what changed here, and watchers here what changed anywhere. */
export class Changes {
  readonly #options: ChangesOptions
  readonly #channel: string
  readonly #watchers = new Map<string, Set<(end: LogEnd) => void>>()
  #ends = new Map<string, number>()
  #deleted = new Set<string>()
  #aborts = new Set<string>()
  #claimable = false
  #sending: Promise<void> | undefined
  readonly #loops: Promise<void>[] = []

  constructor(options: ChangesOptions) {
    this.#options = options
    this.#channel = `runwright_${options.schema.replaceAll('"', '')}`
  }

  /** Begins to listen and to poll. */
  start(): void {
    this.#loops.push(this.#poll())
    const { listen } = this.#options
    if (listen !== null) this.#loops.push(this.#listen(listen))
  }

  /** Resolves when nothing runs any more; the database is closing. */
  async close(): Promise<void> {
    await Promise.all([...this.#loops, this.#sending])
  }

  /** Calls back when the log of a run may have grown; the result ends it. */
  watch(runId: string, changed: (end: LogEnd) => void): () => void {
    const watchers = this.#watchers.get(runId) ?? new Set()
    this.#watchers.set(runId, watchers.add(changed))
    return () => {
      watchers.delete(changed)
      if (watchers.size === 0 && this.#watchers.get(runId) === watchers)
        this.#watchers.delete(runId)
    }
  }

  /** The log of a run has grown by a commit of this process. */
  grown(runId: string, lastSeq: number): void {
    this.#tell(runId, lastSeq)
    this.#ends.set(runId, lastSeq)
    this.#send()
  }

  deleted(runId: string): void {
    this.#tell(runId, 'deleted')
    this.#deleted.add(runId)
    this.#send()
  }

  /** A run may be claimed, also by other processes. */
  claimable(): void {
    this.#options.claimable()
    this.#claimable = true
    this.#send()
  }

  /** Whoever holds this run shall look at the wish for its end. */
  abortWanted(runId: string): void {
    this.#aborts.add(runId)
    this.#send()
  }

  #tell(runId: string, end: LogEnd): void {
    for (const changed of this.#watchers.get(runId) ?? []) changed(end)
  }

  #send(): void {
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
  }

  async #sendAll(): Promise<void> {
    await null // whatever else happens in this tick goes along
    for (let message = this.#next(); message !== null; message = this.#next()) {
      const text = 'SELECT pg_notify($1, $2)'
      const values = [this.#channel, JSON.stringify(message)]
      // One that is lost is made up for by the poll.
      await this.#options.database
        .rows({ name: 'runwright_notify', text, values }, 0)
        .catch(() => [])
    }
  }

  #next(): Message | null {
    if (this.#ends.size + this.#deleted.size + this.#aborts.size === 0 && !this.#claimable)
      return null
    const room = { bytes: IDS_BYTES }
    const aborts = take(this.#aborts, room)
    const deleted = take(this.#deleted, room)
    const lastSeqs = new Map(this.#ends)
    const ends = Object.fromEntries(
      take(this.#ends, room).map((runId) => [runId, lastSeqs.get(runId) ?? 0]),
    )
    const claimable = this.#claimable
    this.#claimable = false
    return { from: this.#options.workerId, ends, deleted, aborts, claimable }
  }

  async #listen(pool: PgPool): Promise<void> {
    const { database } = this.#options
    for (let retry = 1; !database.closing.aborted; retry++) {
      const heard = await this.#listenOnce(pool).catch(() => false)
      if (heard) retry = 1
      await database.pause(backoffDelay(retry, LISTEN_BACKOFF))
    }
  }

  /** Listens until the connection ends; true when it listened at all. */
  async #listenOnce(pool: PgPool): Promise<boolean> {
    const { database, pulse } = this.#options
    const { closing } = database
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => (end = resolve))
    closing.addEventListener('abort', end, { once: true })
    const connecting = database.connect(pool)
    const client = await Promise.race([connecting, ended]).catch(() => undefined)
    if (client === undefined) {
      closing.removeEventListener('abort', end)
      connecting.then((late) => late.release(), () => undefined)
      return false
    }
    client.on('error', end)
    client.on('end', end)
    client.on('notification', ({ channel, payload }) => {
      if (channel === this.#channel && payload !== undefined) this.#hear(payload)
    })
    let takeBack: () => void = () => undefined
    try {
      await Promise.race([
        ended,
        database.inTime(client.query({ text: `LISTEN "${this.#channel}"` })),
      ])
      takeBack = pulse.lend(client, end)
      this.#options.claimable()
      await this.#lookAtAll().catch(() => undefined) // whatever was told before somebody listened
      await ended
      return true
    } finally {
      takeBack()
      closing.removeEventListener('abort', end)
      client.release(true)
    }
  }

  #hear(payload: string): void {
    let message: Message
    try {
      message = JSON.parse(payload) as Message
    } catch {
      return // not ours
    }
    if (message.from === this.#options.workerId) return
    for (const [runId, lastSeq] of Object.entries(message.ends ?? {})) this.#tell(runId, lastSeq)
    for (const runId of message.deleted ?? []) this.#tell(runId, 'deleted')
    if (message.aborts !== undefined && message.aborts.length > 0)
      this.#options.abortsWanted(message.aborts)
    if (message.claimable === true) this.#options.claimable()
  }

  async #poll(): Promise<void> {
    const { database, pollMs } = this.#options
    while (!database.closing.aborted) {
      await database.pause(pollMs)
      if (database.closing.aborted) return
      this.#options.claimable()
      await this.#lookAtAll().catch(() => undefined)
    }
  }

  async #lookAtAll(): Promise<void> {
    const { database, schema } = this.#options
    const runIds = [...this.#watchers.keys()]
    if (runIds.length === 0) return
    const text = `SELECT run_id, last_seq, abort_wanted FROM ${schema}.runs WHERE run_id = ANY($1)`
    const rows = await database.rows({ name: 'runwright_look', text, values: [runIds] }, 0)
    const ends = new Map(rows.map((row) => [row['run_id'] as string, row['last_seq'] as number]))
    for (const runId of runIds) this.#tell(runId, ends.get(runId) ?? 'deleted')
    const aborts = rows
      .filter((row) => row['abort_wanted'] === true)
      .map((row) => row['run_id'] as string)
    if (aborts.length > 0) this.#options.abortsWanted(aborts)
  }
}

/** Takes ids out of a collection as long as there is room; what is too long for any is left to the poll. */
function take(
  ids: { keys(): Iterable<string>; delete(id: string): unknown },
  room: { bytes: number },
): string[] {
  const taken: string[] = []
  for (const id of [...ids.keys()]) {
    const bytes = Buffer.byteLength(JSON.stringify(id)) + AROUND_ID_BYTES
    if (bytes > IDS_BYTES) {
      ids.delete(id)
      continue
    }
    if (bytes > room.bytes) break
    room.bytes -= bytes
    ids.delete(id)
    taken.push(id)
  }
  return taken
}
