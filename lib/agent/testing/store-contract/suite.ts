/** What the parts of the contract share. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { StoreError, type StoreErrorCode } from '../../errors.js'
import type { RunOwner, RunRecord } from '../../events.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import type { RunQuery, RunStore } from '../../store.js'
import { sampleRun, type SampleRunOptions } from '../sample-records.js'

/** Defines tests that each get an empty store of their own. */
export interface Suite {
  test(title: string, body: (store: RunStore, t: TestContext) => Promise<void>): void
}

/** A limit that no log here reaches. */
export const ALL = 1_000_000

/** Appends a whole sample run at once, and returns its records. */
export async function add(
  store: RunStore,
  runId: string,
  options?: SampleRunOptions,
): Promise<RunRecord[]> {
  const records = sampleRun(runId, options)
  await store.append(runId, records)
  return records
}

/** For `assert.rejects`: a {@link StoreError} with this code. */
export function rejectsWith(code: StoreErrorCode): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StoreError, `expected a StoreError, got ${String(error)}`)
    assert.equal(error.code, code)
    return true
  }
}

/** The head that a store must have after these records. */
export function fold(records: readonly RunRecord[]): RunHead {
  const head = records.reduce<RunHead | null>(foldHead, null)
  assert.ok(head !== null)
  return head
}

/** Ids of all runs that a query gives, page after page. */
export async function listAll(
  store: RunStore,
  query: Omit<RunQuery, 'cursor'>,
): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  for (;;) {
    const { heads, next } = await store.list({ ...query, cursor })
    ids.push(...heads.map(({ details }) => details.run_id))
    assert.ok(heads.length <= query.limit)
    if (next === null) return ids
    assert.equal(heads.length, query.limit, 'only the last page may be short')
    cursor = next
  }
}

/** An owner of the tenant that is none. */
export function ownedBy(id: string | null): RunOwner {
  return { id, tenant: null }
}
