/** Helpers of the contract's tests. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { describeError } from '../../../internal/errors.js'
import { StoreError, type StoreErrorCode } from '../../errors.js'
import type { RunOwner, RunRecord } from '../../events.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import type { RunPage, RunQuery, RunStore } from '../../store.js'
import { sampleRun, type SampleRunOptions } from '../sample-records.js'

/** Defines tests, each with its own empty store. */
export interface Suite {
  test(title: string, body: (store: RunStore, t: TestContext) => Promise<void>): void
}

/** A limit above the length of every log here. */
export const ALL = 1_000_000

/** Appends a whole sample run in one call, and returns its records. */
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
    assert.ok(error instanceof StoreError, `expected a StoreError, got ${describeError(error)}`)
    assert.equal(error.code, code)
    return true
  }
}

/** Asserts that one of two appends succeeded and the other one met a conflict. */
export function assertOneConflict(outcomes: readonly PromiseSettledResult<void>[]): void {
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const refused = outcomes.find((outcome) => outcome.status === 'rejected')
  rejectsWith('ERR_AGENT_SEQ_CONFLICT')(refused?.reason)
}

/** The head that a store must return after these records. */
export function fold(records: readonly RunRecord[]): RunHead {
  const head = records.reduce<RunHead | null>(foldHead, null)
  assert.ok(head !== null)
  return head
}

export function idsOf({ heads }: RunPage): string[] {
  return heads.map(({ details }) => details.run_id)
}

/** The ids of all matching runs, read page by page. */
export async function listAll(
  store: RunStore,
  query: Omit<RunQuery, 'cursor'>,
): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  for (;;) {
    const page = await store.list({ ...query, cursor })
    const found = idsOf(page)
    ids.push(...found)
    assert.ok(found.length <= query.limit)
    if (page.next === null) return ids
    assert.equal(found.length, query.limit, 'only the last page may be shorter than the limit')
    cursor = page.next
  }
}

/** An owner without a tenant. */
export function ownedBy(id: string | null): RunOwner {
  return { id, tenant: null }
}
