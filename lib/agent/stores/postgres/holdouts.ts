/**
 * Held-out tests in a table of their own: one row per run that has some, encrypted with a key that
 * is in the log of the run.
 *
 * @module
 */
import type { HoldoutStore } from '../../holdout-store.js'
import type { Database } from './database.js'
import { isRunId } from './run-rows.js'

/** The migration for them; `$schema` is replaced by the quoted name of the schema. */
export const HOLDOUT_STATEMENTS: readonly string[] = [
  `CREATE TABLE $schema.holdouts (
    run_id text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
  )`,
]

/** Collaborators of {@link PostgresHoldouts}. */
export interface PostgresHoldoutsParts {
  readonly database: Database
  readonly schema: string
  readonly patienceMs: number
  /** @throws {@link StoreError} while the store is not open. */
  readonly checkOpen: () => void
}

/** See the comment of this file. */
export class PostgresHoldouts implements HoldoutStore {
  readonly #parts: PostgresHoldoutsParts

  constructor(parts: PostgresHoldoutsParts) {
    this.#parts = parts
  }

  async put(runId: string, content: Uint8Array): Promise<void> {
    const { schema } = this.#parts
    // A repetition of the same call, whose answer was lost, is no error.
    const text = `INSERT INTO ${schema}.holdouts (run_id, content) VALUES ($1, $2)
      ON CONFLICT (run_id) DO UPDATE SET content = EXCLUDED.content`
    await this.#rows(text, [runId, Buffer.from(content)])
  }

  async get(runId: string): Promise<Uint8Array | null> {
    if (!isRunId(runId)) return null
    const text = `SELECT content FROM ${this.#parts.schema}.holdouts WHERE run_id = $1`
    const [row] = await this.#rows(text, [runId])
    return (row?.['content'] as Uint8Array | undefined) ?? null
  }

  async remove(runId: string): Promise<void> {
    if (!isRunId(runId)) return
    const text = `DELETE FROM ${this.#parts.schema}.holdouts WHERE run_id = $1`
    await this.#rows(text, [runId])
  }

  async #rows(text: string, values: unknown[]): ReturnType<Database['rows']> {
    const { checkOpen, database, patienceMs } = this.#parts
    checkOpen()
    return await database.rows({ text, values }, patienceMs)
  }
}
