import { closeSync, fsyncSync, openSync } from 'node:fs'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/** What the file holds, as JSON. */
interface Saved {
  readonly version: 1
  /** Epoch ms: every run created up to then is either finished or in `runs`. */
  readonly since: number
  /** `seq` of the last event delivered of each unfinished run. */
  readonly runs: Readonly<Record<string, number>>
}

/**
 * The progress of deliveries to one endpoint, in a file that is replaced atomically. After a crash
 * it holds an earlier state: an event may be delivered twice, with the same id, but is never lost.
 */
export class WebhookCursor {
  readonly #path: string
  readonly #runs: Map<string, number>
  #since: number
  #saving: Promise<void> | null = null
  #again = false

  private constructor(path: string, { since, runs }: Saved) {
    this.#path = path
    this.#since = since
    this.#runs = new Map(Object.entries(runs))
  }

  /**
   * Reads the file; without one, starts with runs created from now on.
   *
   * @throws Error when the file cannot be read or has another format.
   */
  static async open(path: string, nowMs: number): Promise<WebhookCursor> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    let saved: Saved = { version: 1, since: nowMs, runs: {} }
    try {
      saved = JSON.parse(await readFile(path, 'utf8')) as Saved
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        throw new Error(`webhooks: cannot read ${path}: ${(error as Error).message}`, {
          cause: error,
        })
      }
    }
    if (saved.version !== 1) throw new Error(`webhooks: ${path} was written by a newer version`)
    const cursor = new WebhookCursor(path, saved)
    await cursor.save()
    return cursor
  }

  get since(): number {
    return this.#since
  }

  /** Unfinished runs, with the `seq` of the last event delivered. */
  get runs(): ReadonlyMap<string, number> {
    return this.#runs
  }

  /** Adds a run, to be delivered from its first event on. */
  add(runId: string, createdMs: number): void {
    if (!this.#runs.has(runId)) this.#runs.set(runId, 0)
    this.#since = Math.max(this.#since, createdMs)
  }

  /** All wanted events of the run up to `seq` were delivered. */
  advance(runId: string, seq: number): void {
    if (this.#runs.has(runId)) this.#runs.set(runId, seq)
  }

  /** Removes a run of which nothing is left to deliver. */
  finish(runId: string): void {
    this.#runs.delete(runId)
  }

  /** Resolves once the present state, or a later one, is durable. */
  save(): Promise<void> {
    if (this.#saving !== null) {
      this.#again = true
      return this.#saving
    }
    this.#saving = this.#write().finally(() => (this.#saving = null))
    return this.#saving
  }

  async #write(): Promise<void> {
    do {
      this.#again = false
      const saved: Saved = { version: 1, since: this.#since, runs: Object.fromEntries(this.#runs) }
      const temporary = `${this.#path}.new`
      const file = await open(temporary, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify(saved))
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(temporary, this.#path)
      const folder = openSync(dirname(this.#path), 'r')
      try {
        fsyncSync(folder)
      } finally {
        closeSync(folder)
      }
    } while (this.#again)
  }
}
