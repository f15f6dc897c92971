/**
 * Messages to runs that other processes hold: only the holder appends to a run, so a message is
 * left for it in a table, and its sender waits for the answer.
 *
 * 1. The run's row is locked while a message is left, so messages of one run have an order, and
 *    whether the run has ended, or has a holder, stays true until the message is there.
 * 2. A holder whose lease has ended may still believe that it holds the run. Then the run is taken
 *    away from it first: the next holder gets the message before it works.
 * 3. Processes of an earlier version would not look for it: from then on they do not get the run.
 *
 * @module
 */
import { StoreError, type StoreErrorCode } from '../../errors.js'
import type { EventPayloads } from '../../events.js'
import type { LeftMessage } from '../../shared-store.js'
import type { Database, Transaction } from './database.js'
import { LABELS_WITH_FORMAT } from './formats.js'
import { isRunId } from './run-rows.js'

type Message = EventPayloads['user_message']

/** For the migration. */
export const MESSAGE_STATEMENTS: readonly string[] = [
  `CREATE TABLE $schema.messages (
    run_id text COLLATE "C" NOT NULL REFERENCES $schema.runs ON DELETE CASCADE,
    message_id text NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    message text NOT NULL,
    taken boolean NOT NULL DEFAULT false,
    answer text,
    left_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, message_id)
  )`,
]

/** Messages to one run that have no answer. */
const MAX_LEFT = 100
/** Milliseconds between two looks for an answer, if no notification comes. */
const LOOK_MS = 500
/** How much longer than a lease a message waits to be taken. */
const SLACK_MS = 5_000
/** Holder of runs that were taken away from a process whose lease had ended: it is no process. */
const NOBODY = 'nobody'

/** Options of {@link Messages}. */
export interface MessagesOptions {
  readonly database: Database
  /** Quoted name of the schema. */
  readonly schema: string
  readonly patienceMs: number
  readonly leaseMs: number
  /** Tells the holder of the run and the senders, in whatever process, to look again. */
  readonly onChanged: (runId: string) => void
  /** The run has no holder any more. */
  readonly onFreed: () => void
}

/** The messages that processes leave for one another. */
export class Messages {
  readonly #options: MessagesOptions
  /** End the pauses of senders, by run. */
  readonly #senders = new Map<string, Set<() => void>>()

  constructor(options: MessagesOptions) {
    this.#options = options
  }

  /** As `SharedRuns.leaveMessage`. */
  async leave(runId: string, message: Message): Promise<LeftMessage> {
    if (!isRunId(runId)) return 'ended'
    const { database, patienceMs, leaseMs, onChanged, onFreed } = this.#options
    const deadline = performance.now() + leaseMs + SLACK_MS
    let isToTell = true
    while (!database.closing.aborted) {
      const answered = this.#nextAnswer(runId)
      try {
        const left = await database.transaction(patienceMs, (transaction) =>
          this.#leaveWithin(transaction, runId, message),
        )
        if (left === 'kept') onFreed()
        if (left !== null) return left
        // Not whenever it is woken: the holder's answers to others would come back as questions.
        if (isToTell) onChanged(runId)
        const woken = answered.comes.then(() => false)
        isToTell = await Promise.race([woken, database.pause(LOOK_MS).then(() => true)])
      } finally {
        answered.forget()
      }
      if (performance.now() > deadline && (await this.#withdraw(runId, message)))
        return 'unanswered'
    }
    const code: StoreErrorCode = 'ERR_AGENT_STORE_UNAVAILABLE'
    throw new StoreError(code, 'the store was closed before the message was taken')
  }

  /** As `SharedRuns.takeMessages`. */
  async take(runId: string): Promise<readonly Message[]> {
    const { database, schema, patienceMs } = this.#options
    // Those whose senders never saw the answer go, too.
    const text = `WITH old AS (
        DELETE FROM ${schema}.messages WHERE run_id = $1 AND answer IS NOT NULL
          AND left_at < clock_timestamp() - interval '10 minutes'
      )
      UPDATE ${schema}.messages SET taken = true WHERE run_id = $1 AND answer IS NULL
      RETURNING message, position::text AS position`
    const query = { name: 'runwright_take_messages', text, values: [runId] }
    const rows = [...(await database.rows(query, patienceMs))]
    rows.sort((a, b) => Number(a['position']) - Number(b['position']))
    return rows.map((row) => JSON.parse(row['message'] as string) as Message)
  }

  /** As `SharedRuns.answerMessage`. */
  async answer(runId: string, messageId: string, answer: LeftMessage): Promise<void> {
    const { database, schema, patienceMs, onChanged } = this.#options
    const text = `UPDATE ${schema}.messages SET answer = $3
      WHERE run_id = $1 AND message_id = $2 AND answer IS NULL`
    await database.rows({ text, values: [runId, messageId, answer] }, patienceMs)
    onChanged(runId)
  }

  /** Wakes the senders in this process. */
  answered(runId: string): void {
    for (const wake of this.#senders.get(runId) ?? []) wake()
  }

  /** One look, under the lock of the run's row; null while the holder has not answered. */
  async #leaveWithin(
    { rows }: Transaction,
    runId: string,
    message: Message,
  ): Promise<LeftMessage | null> {
    const { schema } = this.#options
    const lock = `SELECT ended_ms IS NOT NULL AS ended, claimed_by IS NOT NULL AS claimed,
        EXISTS (SELECT 1 FROM ${schema}.workers w
          WHERE w.worker_id = r.claimed_by AND w.expires_at > clock_timestamp()) AS live
      FROM ${schema}.runs r WHERE run_id = $1 FOR NO KEY UPDATE OF r`
    const [run] = await rows({ text: lock, values: [runId] })
    const own = [runId, message.message_id]
    const find = `SELECT answer, message FROM ${schema}.messages
      WHERE run_id = $1 AND message_id = $2`
    const [row] = await rows({ text: find, values: own })
    const answer = (row?.['answer'] ?? null) as LeftMessage | null
    if (run === undefined || run['ended'] === true || answer !== null) {
      const text = `DELETE FROM ${schema}.messages WHERE run_id = $1 AND message_id = $2`
      if (row !== undefined) await rows({ text, values: own })
      return answer ?? 'ended'
    }
    const json = JSON.stringify(message)
    if (row !== undefined && row['message'] !== json) return 'key_reused'
    if (run['claimed'] !== true) return 'unclaimed'
    if (row === undefined) {
      const count = `SELECT count(*)::integer AS waiting FROM ${schema}.messages
        WHERE run_id = $1 AND answer IS NULL`
      const [left] = await rows({ text: count, values: [runId] })
      if ((left?.['waiting'] as number) >= MAX_LEFT) return 'too_many'
      const insert = `WITH labelled AS (
          UPDATE ${schema}.runs r SET labels = ${LABELS_WITH_FORMAT} WHERE run_id = $1
        )
        INSERT INTO ${schema}.messages (run_id, message_id, message) VALUES ($1, $2, $3)`
      await rows({ text: insert, values: [...own, json] })
    }
    if (run['live'] === true) return null
    const text = `UPDATE ${schema}.runs SET claimed_by = $2, fence = fence + 1 WHERE run_id = $1`
    await rows({ text, values: [runId, NOBODY] })
    return 'kept'
  }

  /** Resolves with true if the message was not taken, and cannot be any more. */
  async #withdraw(runId: string, { message_id }: Message): Promise<boolean> {
    const { database, schema, patienceMs } = this.#options
    const text = `DELETE FROM ${schema}.messages
      WHERE run_id = $1 AND message_id = $2 AND NOT taken RETURNING message_id`
    return (await database.rows({ text, values: [runId, message_id] }, patienceMs)).length > 0
  }

  #nextAnswer(runId: string): { readonly comes: Promise<void>; readonly forget: () => void } {
    const senders = this.#senders.get(runId) ?? new Set()
    this.#senders.set(runId, senders)
    let wake: () => void = () => undefined
    const comes = new Promise<void>((resolve) => (wake = resolve))
    senders.add(wake)
    const forget = (): void => {
      senders.delete(wake)
      if (senders.size === 0 && this.#senders.get(runId) === senders) this.#senders.delete(runId)
    }
    return { comes, forget }
  }
}
