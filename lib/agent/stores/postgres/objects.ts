/**
 * Blobs in PostgreSQL, for any number of processes.
 *
 * 1. A blob of up to one chunk is one row. A larger one has its chunks in a table of their own, one
 *    statement each, and counts as stored once all of them are there.
 * 2. Chunks are compressed one by one, so that those of two processes that store the same blob at
 *    the same time fit together.
 * 3. What is stored or found is used from then on, as `used_at` says; what removes blobs looks
 *    at that again once the row is locked. No transaction has more than one statement.
 *
 * @module
 */
import { StoreError } from '../../errors.js'
import type { ObjectStore, StoredObject } from '../../object-store.js'
import { ObjectCalls } from '../object-calls.js'
import { checkLimit } from '../object-checks.js'
import { hasHash, pack, unpack } from '../packed.js'
import type { Database } from './database.js'
import type { PgRow } from './pg-types.js'

/** The migration that adds the tables. `$schema` is replaced by the quoted name of the schema. */
export const OBJECT_STATEMENTS: readonly string[] = [
  `CREATE TABLE $schema.objects (
    hash text COLLATE "C" PRIMARY KEY,
    used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    chunks integer NOT NULL,
    stored boolean NOT NULL,
    data bytea
  )`,
  `CREATE TABLE $schema.object_chunks (
    hash text COLLATE "C" REFERENCES $schema.objects ON DELETE CASCADE,
    number integer,
    data bytea NOT NULL,
    PRIMARY KEY (hash, number)
  )`,
  // They are compressed already.
  `ALTER TABLE $schema.objects ALTER COLUMN data SET STORAGE EXTERNAL`,
  `ALTER TABLE $schema.object_chunks ALTER COLUMN data SET STORAGE EXTERNAL`,
  // Of the newest checkpoint, from which all others are found.
  `ALTER TABLE $schema.runs ADD COLUMN checkpoint_seq integer`,
  `CREATE TABLE $schema.sweeps (what text PRIMARY KEY, begun_at timestamptz NOT NULL)`,
]

/** With its header, a packed chunk has at most 1 MiB. */
const CHUNK_BYTES = (1 << 20) - 64
const BLOBS_PER_INSERT = 100
const HASHES_PER_STATEMENT = 500
/** A use is noted no more often, so that what many runs have is not written again by each. */
const PRECISION = "interval '5 minutes'"
/** Attempts to store the chunks of a blob that others remove meanwhile. */
const ATTEMPTS = 5
const FOREIGN_KEY_VIOLATION = '23503'
/** Further findings add nothing for a person who has to restore a backup anyway. */
const MAX_PROBLEMS = 1_000

/** Collaborators of {@link PostgresObjects}. */
export interface PostgresObjectsParts {
  readonly database: Database
  readonly schema: string
  readonly patienceMs: number
  /** @throws {@link StoreError} while the store is not open. */
  readonly checkOpen: () => void
}

/** See the comment of this file. */
export class PostgresObjects implements ObjectStore {
  readonly #database: Database
  readonly #schema: string
  readonly #patienceMs: number
  readonly #calls: ObjectCalls
  readonly #damaged = new Map<string, string>()

  constructor({ database, schema, patienceMs, checkOpen }: PostgresObjectsParts) {
    this.#database = database
    this.#schema = schema
    this.#patienceMs = patienceMs
    this.#calls = new ObjectCalls(checkOpen)
  }

  /** A sentence for each blob that this process has found to be damaged. */
  get problems(): readonly string[] {
    return [...this.#damaged.values()]
  }

  put(objects: readonly StoredObject[]): Promise<void> {
    const hashes = objects.map(({ hash }) => hash)
    return this.#calls.run(hashes, async () => {
      const damaged = hashes.filter((hash) => this.#damaged.has(hash))
      if (damaged.length > 0) await this.#delete(damaged, 0)
      const known = await this.#has(hashes)
      const unknown = new Map<string, StoredObject>()
      // In one order in all processes: they wait for one another, and not in a circle.
      for (const object of objects.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))) {
        if (!known.has(object.hash)) unknown.set(object.hash, object)
      }
      await this.#insert([...unknown.values()])
    })
  }

  get(hash: string): Promise<Uint8Array | null> {
    return this.#calls.run([hash], async () => {
      const packed = await this.#read(hash)
      if (packed === null) return null
      const parts = await Promise.all(packed.map((data) => (data === null ? null : unpack(data))))
      const whole = parts.every((part) => part !== null) ? Buffer.concat(parts) : null
      if (whole !== null && (await hasHash(whole, hash))) {
        this.#damaged.delete(hash)
        return whole
      }
      const problem = `object ${hash} in schema ${this.#schema} is damaged`
      if (this.#damaged.size < MAX_PROBLEMS) this.#damaged.set(hash, problem)
      throw new StoreError('ERR_AGENT_STORE_CORRUPT', problem)
    })
  }

  has(hashes: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#calls.run(hashes, () => this.#has(hashes))
  }

  list(after: string | null, limit: number): Promise<readonly string[]> {
    return this.#calls.run(after === null ? [] : [after], async () => {
      checkLimit(limit)
      const text = `SELECT hash FROM ${this.#schema}.objects WHERE hash > $1
        ORDER BY hash LIMIT $2`
      const rows = await this.#rows('list', text, [after ?? '', limit])
      return rows.map((row) => row['hash'] as string)
    })
  }

  delete(hashes: readonly string[], unusedMs: number): Promise<void> {
    return this.#calls.run(hashes, () => this.#delete(hashes, unusedMs))
  }

  claimSweep(everyMs: number): Promise<boolean> {
    return this.#calls.run([], async () => {
      const text = `INSERT INTO ${this.#schema}.sweeps AS s (what, begun_at)
        VALUES ('objects', clock_timestamp()) ON CONFLICT (what)
        DO UPDATE SET begun_at = clock_timestamp()
        WHERE s.begun_at <= clock_timestamp() - make_interval(secs => $1::double precision / 1000)
        RETURNING what`
      return (await this.#rows('sweep', text, [everyMs])).length > 0
    })
  }

  /** Waits for calls in flight. */
  async close(): Promise<void> {
    await this.#calls.close()
  }

  async #has(hashes: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>()
    for (const some of pages(hashes)) {
      const text = `SELECT hash, used_at < clock_timestamp() - ${PRECISION} AS old
        FROM ${this.#schema}.objects WHERE hash = ANY($1) AND stored`
      const old: string[] = []
      for (const row of await this.#rows('has', text, [some])) {
        const hash = row['hash'] as string
        if (row['old'] === true) old.push(hash)
        else found.add(hash)
      }
      // What is removed at the same time is not there any more, or is not removed.
      for (const hash of old.length === 0 ? [] : await this.#use(old)) found.add(hash)
    }
    for (const hash of this.#damaged.keys()) found.delete(hash)
    return found
  }

  async #use(hashes: readonly string[]): Promise<string[]> {
    const text = `UPDATE ${this.#schema}.objects AS o SET used_at = clock_timestamp()
      FROM (SELECT hash FROM ${this.#schema}.objects WHERE hash = ANY($1)
        ORDER BY hash FOR UPDATE) AS found
      WHERE o.hash = found.hash RETURNING o.hash`
    const rows = await this.#rows('use', text, [hashes])
    return rows.map((row) => row['hash'] as string)
  }

  async #delete(hashes: readonly string[], unusedMs: number): Promise<void> {
    const text = `DELETE FROM ${this.#schema}.objects WHERE hash IN (
      SELECT hash FROM ${this.#schema}.objects WHERE hash = ANY($1) AND ($2 = 0 OR
        used_at < clock_timestamp() - ${PRECISION} - make_interval(secs => $2 / 1000))
      ORDER BY hash FOR UPDATE)`
    const typed = text.replaceAll('$2', '$2::double precision')
    for (const some of pages(hashes)) {
      await this.#rows('delete', typed, [some, unusedMs])
      for (const hash of some) this.#damaged.delete(hash)
    }
  }

  /** Adds blobs that are in order of their hashes. */
  async #insert(objects: readonly StoredObject[]): Promise<void> {
    let rows: (string | Buffer)[] = []
    let bytes = 0
    const flush = async (): Promise<void> => {
      if (rows.length > 0) await this.#insertSmall(rows)
      rows = []
      bytes = 0
    }
    for (const object of objects) {
      if (object.content.length > CHUNK_BYTES) {
        await flush()
        await this.#insertLarge(object)
        continue
      }
      const data = await pack(object.content)
      if (bytes + data.length > CHUNK_BYTES || rows.length === 2 * BLOBS_PER_INSERT) await flush()
      rows.push(object.hash, data)
      bytes += data.length
    }
    await flush()
  }

  async #insertSmall(values: readonly (string | Buffer)[]): Promise<void> {
    const rows = Array.from(
      { length: values.length / 2 },
      (_, i) => `($${2 * i + 1}, 0, true, $${2 * i + 2}::bytea)`,
    )
    const text = `INSERT INTO ${this.#schema}.objects (hash, chunks, stored, data)
      VALUES ${rows.join(', ')} ON CONFLICT (hash) DO UPDATE SET used_at = clock_timestamp()`
    await this.#rows(null, text, values)
  }

  async #insertLarge(object: StoredObject): Promise<void> {
    for (let attempt = 1; !(await this.#tryLarge(object)); attempt++) {
      if (attempt < ATTEMPTS) continue
      const problem = `object ${object.hash} was removed again and again while it was stored`
      throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', problem)
    }
  }

  /** False when it was removed meanwhile. */
  async #tryLarge({ hash, content }: StoredObject): Promise<boolean> {
    const schema = this.#schema
    const chunks = Math.ceil(content.length / CHUNK_BYTES)
    const begin = `INSERT INTO ${schema}.objects (hash, chunks, stored) VALUES ($1, $2, false)
      ON CONFLICT (hash) DO UPDATE SET used_at = clock_timestamp() RETURNING stored`
    const [row] = await this.#rows('begin', begin, [hash, chunks])
    if (row?.['stored'] === true) return true
    const add = `INSERT INTO ${schema}.object_chunks (hash, number, data)
      VALUES ($1, $2, $3::bytea) ON CONFLICT DO NOTHING`
    for (let i = 0; i < chunks; i++) {
      const chunk = content.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES)
      try {
        await this.#rows('chunk', add, [hash, i, await pack(chunk)])
      } catch (error) {
        const { cause } = error as { cause?: { code?: unknown } }
        if (cause?.code === FOREIGN_KEY_VIOLATION) return false
        throw error
      }
    }
    const end = `UPDATE ${schema}.objects SET stored = true, used_at = clock_timestamp()
      WHERE hash = $1
        AND (SELECT count(*) FROM ${schema}.object_chunks WHERE hash = $1) = chunks
      RETURNING hash`
    return (await this.#rows('end', end, [hash])).length > 0
  }

  /** The chunks of a blob, null for one that is missing; null when there is no such blob. */
  async #read(hash: string): Promise<(Buffer | null)[] | null> {
    const schema = this.#schema
    const text = `SELECT chunks, data FROM ${schema}.objects WHERE hash = $1 AND stored`
    const chunk = `SELECT data FROM ${schema}.object_chunks WHERE hash = $1 AND number = $2`
    const [row] = await this.#rows('get', text, [hash])
    if (row === undefined) return null
    const count = row['chunks'] as number
    if (count === 0) return [bytesOf(row)]
    const chunks: (Buffer | null)[] = []
    for (let i = 0; i < count; i++) {
      const [found] = await this.#rows('part', chunk, [hash, i])
      if (found === undefined && (await this.#rows('get', text, [hash])).length === 0) return null
      chunks.push(found === undefined ? null : bytesOf(found))
    }
    return chunks
  }

  #rows(
    name: string | null,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly PgRow[]> {
    const query = { text, values: [...values] }
    const named = name === null ? query : { ...query, name: `runwright_object_${name}` }
    return this.#database.rows(named, this.#patienceMs)
  }
}

/** Drivers return bytes as they are, or in PostgreSQL's text form. */
function bytesOf({ data }: PgRow): Buffer | null {
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.length)
  return typeof data === 'string' && data.startsWith('\\x')
    ? Buffer.from(data.slice(2), 'hex')
    : null
}

function* pages(hashes: readonly string[]): Generator<readonly string[]> {
  for (let i = 0; i < hashes.length; i += HASHES_PER_STATEMENT) {
    yield hashes.slice(i, i + HASHES_PER_STATEMENT)
  }
}
