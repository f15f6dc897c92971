/**
 * How processes learn of changes made by others: notifications after commits, and a poll as the
 * safety net. A notification is only a hint; the tables are the truth.
 *
 * Notifications are sent one at a time, each with everything that has changed meanwhile.
 *
 * @module
 */
import { backoffDelay, type Backoff } from '../../../internal/time.js'
import type { LogEnd } from '../../shared-store.js'
import type { Database } from './database.js'
import type { PgPool } from './pg-types.js'
import type { HeartbeatConnection } from './heartbeat-connection.js'

/** Bytes of ids in one notification; PostgreSQL takes less than 8000 bytes in all. */
const IDS_BYTES = 7_000
/** Bytes around an id: quotes, a comma, a sequence number. */
const AROUND_ID_BYTES = 16
const LISTEN_BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }

/** The payload of a notification, sent as JSON. */
interface Message {
  /** The sender, which ignores its own messages. */
  readonly from: string
  /** `last_seq` of runs whose logs have grown. */
  readonly ends?: Readonly<Record<string, number>>
  readonly deleted?: readonly string[]
  readonly aborts?: readonly string[]
  /** Runs for whose holders messages were left, or whose holders answered some. */
  readonly messages?: readonly string[]
  /** There may be a run to claim. */
  readonly claimable?: boolean
}

/** Options of {@link Notifications}. */
export interface NotificationsOptions {
  readonly database: Database
  /** Shares the listening connection; a failed heartbeat reveals that the connection is broken. */
  readonly heartbeat: HeartbeatConnection
  /** The pool for the listening connection; null to poll only. */
  readonly listen: PgPool | null
  /** Quoted name of the schema. */
  readonly schema: string
  readonly workerId: string
  readonly pollMs: number
  /** Called when there may be a run to claim, also for changes of this process. */
  readonly onClaimable: () => void
  /** Called when another process requested the end of these runs. */
  readonly onAbortsRequested: (runIds: readonly string[]) => void
  /** Called when messages to this run were left for its holder, or answered, by any process. */
  readonly onMessages: (runId: string) => void
  /** Called with each poll, for changes of which no notification tells. */
  readonly onPoll: () => Promise<void>
}

/** Notifies other processes of changes here, and watchers here of changes anywhere. */
export class Notifications {
  readonly #options: NotificationsOptions
  readonly #channel: string
  readonly #watchers = new Map<string, Set<(end: LogEnd) => void>>()
  #ends = new Map<string, number>()
  #deleted = new Set<string>()
  #aborts = new Set<string>()
  #messages = new Set<string>()
  #claimable = false
  #sending: Promise<void> | undefined
  readonly #loops: Promise<void>[] = []

  constructor(options: NotificationsOptions) {
    this.#options = options
    this.#channel = `runwright_${options.schema.replaceAll('"', '')}`
  }

  start(): void {
    this.#loops.push(this.#poll())
    const { listen } = this.#options
    if (listen !== null) this.#loops.push(this.#listen(listen))
  }

  /** Resolves once listening, polling and sending have ended, after `Database.giveUp()`. */
  async close(): Promise<void> {
    await Promise.all([...this.#loops, this.#sending])
  }

  /** Calls back when the log of a run may have grown, until the returned function is called. */
  watch(runId: string, changed: (end: LogEnd) => void): () => void {
    const watchers = this.#watchers.get(runId) ?? new Set()
    this.#watchers.set(runId, watchers.add(changed))
    return () => {
      watchers.delete(changed)
      if (watchers.size === 0 && this.#watchers.get(runId) === watchers)
        this.#watchers.delete(runId)
    }
  }

  /** Reports that this process has committed records of a run. */
  grown(runId: string, lastSeq: number): void {
    this.#notifyWatchers(runId, lastSeq)
    this.#ends.set(runId, lastSeq)
    this.#send()
  }

  deleted(runId: string): void {
    this.#notifyWatchers(runId, 'deleted')
    this.#deleted.add(runId)
    this.#send()
  }

  /** Reports that there may be a run to claim, for this process or others. */
  claimable(): void {
    this.#options.onClaimable()
    this.#claimable = true
    this.#send()
  }

  /** Asks the process that holds the run to check for an abort request. */
  abortRequested(runId: string): void {
    this.#aborts.add(runId)
    this.#send()
  }

  /** Reports that messages to this run were left for its holder, or answered. */
  messages(runId: string): void {
    this.#options.onMessages(runId)
    this.#messages.add(runId)
    this.#send()
  }

  #notifyWatchers(runId: string, end: LogEnd): void {
    for (const changed of this.#watchers.get(runId) ?? []) changed(end)
  }

  #send(): void {
    // Nothing waits for one that begins now, and the host may end its pool.
    if (this.#options.database.closing.aborted) return
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
  }

  async #sendAll(): Promise<void> {
    await null // changes of the same tick go into one message
    for (let message = this.#next(); message !== null; message = this.#next()) {
      const text = 'SELECT pg_notify($1, $2)'
      const values = [this.#channel, JSON.stringify(message)]
      // The poll makes up for a lost notification.
      await this.#options.database
        .rows({ name: 'runwright_notify', text, values }, 0)
        .catch(() => [])
    }
  }

  #next(): Message | null {
    const changed = [this.#ends, this.#deleted, this.#aborts, this.#messages]
    if (!this.#claimable && changed.every(({ size }) => size === 0)) return null
    const room = { bytes: IDS_BYTES }
    const aborts = take(this.#aborts, room)
    const messages = take(this.#messages, room)
    const deleted = take(this.#deleted, room)
    const lastSeqs = new Map(this.#ends)
    const ends = Object.fromEntries(
      take(this.#ends, room).map((runId) => [runId, lastSeqs.get(runId) ?? 0]),
    )
    const claimable = this.#claimable
    this.#claimable = false
    return { from: this.#options.workerId, ends, deleted, aborts, messages, claimable }
  }

  async #listen(pool: PgPool): Promise<void> {
    const { database } = this.#options
    for (let retry = 1; !database.closing.aborted; retry++) {
      const listened = await this.#listenOnce(pool).catch(() => false)
      if (listened) retry = 1
      await database.pause(backoffDelay(retry, LISTEN_BACKOFF))
    }
  }

  /** Listens until the connection ends; resolves with false when listening never started. */
  async #listenOnce(pool: PgPool): Promise<boolean> {
    const { database, heartbeat } = this.#options
    const { closing } = database
    let end: () => void = () => undefined
    // Not `end = resolve`: listeners get an event, which must not be taken for a client.
    const ended = new Promise<undefined>((resolve) => (end = () => resolve(undefined)))
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
      if (channel === this.#channel && payload !== undefined) this.#receive(payload)
    })
    let unshare: () => void = () => undefined
    try {
      await Promise.race([
        ended,
        database.inTime(client.query({ text: `LISTEN "${this.#channel}"` })),
      ])
      unshare = heartbeat.share(client, end)
      this.#options.onClaimable()
      await this.#checkWatched().catch(() => undefined) // changes from before it listened
      await ended
      return true
    } finally {
      unshare()
      closing.removeEventListener('abort', end)
      client.release(true)
    }
  }

  #receive(payload: string): void {
    let message: Message
    try {
      message = JSON.parse(payload) as Message
    } catch {
      return // not sent by a store
    }
    if (message.from === this.#options.workerId) return
    for (const [runId, lastSeq] of Object.entries(message.ends ?? {})) {
      this.#notifyWatchers(runId, lastSeq)
    }
    for (const runId of message.deleted ?? []) this.#notifyWatchers(runId, 'deleted')
    for (const runId of message.messages ?? []) this.#options.onMessages(runId)
    const { aborts = [] } = message
    if (aborts.length > 0) this.#options.onAbortsRequested(aborts)
    if (message.claimable === true) this.#options.onClaimable()
  }

  async #poll(): Promise<void> {
    const { database, pollMs } = this.#options
    while (!database.closing.aborted) {
      await database.pause(pollMs)
      if (database.closing.aborted) return
      this.#options.onClaimable()
      await this.#checkWatched().catch(() => undefined)
      await this.#options.onPoll().catch(() => undefined)
    }
  }

  async #checkWatched(): Promise<void> {
    const { database, schema } = this.#options
    const runIds = [...this.#watchers.keys()]
    if (runIds.length === 0) return
    const text = `SELECT run_id, last_seq, abort_wanted FROM ${schema}.runs WHERE run_id = ANY($1)`
    const rows = await database.rows({ name: 'runwright_look', text, values: [runIds] }, 0)
    const ends = new Map(rows.map((row) => [row['run_id'] as string, row['last_seq'] as number]))
    for (const runId of runIds) this.#notifyWatchers(runId, ends.get(runId) ?? 'deleted')
    const aborts = rows
      .filter((row) => row['abort_wanted'] === true)
      .map((row) => row['run_id'] as string)
    if (aborts.length > 0) this.#options.onAbortsRequested(aborts)
  }
}

/** Removes ids from a collection while there is room; an id that never fits is left to the poll. */
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
