import type { Database } from './database.js'
import type { PgQuery } from './pg-types.js'

/** The row of `sweeps` that tells when runs were removed last, by any process. */
const ROW = 'runs removed'
/** Milliseconds between looks at it. */
const LOOK_MS = 1_000

/** Ends a transaction that has removed runs: one after the other, so each is another time. */
export function noteRemoval(schema: string): PgQuery {
  const text = `INSERT INTO ${schema}.sweeps (what, begun_at) VALUES ($1, clock_timestamp())
    ON CONFLICT (what) DO UPDATE SET begun_at = clock_timestamp()`
  return { name: 'runwright_removal', text, values: [ROW] }
}

/** Tells the engine that runs were removed: by retention, or by any process. */
export class Removals {
  readonly #database: Database
  readonly #schema: string
  #listener: ((here: boolean) => void) | null = null
  #lookedAt = -Infinity
  /** The last removal; undefined before the first look, which may be too late for some. */
  #last: unknown

  constructor({ database, schema }: { readonly database: Database; readonly schema: string }) {
    this.#database = database
    this.#schema = schema
  }

  listen(listener: (here: boolean) => void): void {
    this.#listener = listener
  }

  /** Says that this process has removed runs. */
  here(): void {
    this.#listener?.(true)
  }

  /** Looks whether some process has, unless it has just looked. */
  async look(): Promise<void> {
    const now = performance.now()
    if (this.#listener === null || now - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = now
    const text = `SELECT begun_at::text AS at FROM ${this.#schema}.sweeps WHERE what = $1`
    const [row] = await this.#database.rows({ name: 'runwright_removed', text, values: [ROW] }, 0)
    const last = row?.['at'] ?? null
    if (last === this.#last) return
    this.#last = last
    this.#listener(false)
  }
}
