/**
 * The contract of `RunStore`, sentence by sentence, as tests for `node:test`.
 *
 * @module
 */
import { describe, test, type TestContext } from 'node:test'
import type { RunStore } from '../store.js'
import { testAppends } from './store-contract/appends.js'
import { testClosing, testConcurrency } from './store-contract/concurrency.js'
import { testDeletes } from './store-contract/deletes.js'
import { testDurability } from './store-contract/durability.js'
import { testHeads } from './store-contract/heads.js'
import { testKeys } from './store-contract/keys.js'
import { testLists } from './store-contract/lists.js'
import { testReads } from './store-contract/reads.js'
import { testSharing } from './store-contract/sharing.js'
import type { Suite } from './store-contract/suite.js'

/** Options of {@link testRunStore}: what a store can do besides the contract's core. */
export interface TestRunStoreOptions {
  /**
   * Closes the store and opens the same data again, as a restart would. Without it the tests of
   * durability are left out: for stores that keep nothing.
   */
  readonly reopen?: ((store: RunStore, t: TestContext) => Promise<RunStore>) | undefined
  /**
   * Opens a further store on the same data, as another process would. For stores that several
   * processes share; without it the tests of that are left out. The suite closes what it returns.
   */
  readonly connect?: ((store: RunStore, t: TestContext) => Promise<RunStore>) | undefined
  /** Called after each test, once its store was closed: drops a schema, removes a folder. */
  readonly teardown?: ((store: RunStore) => Promise<void> | void) | undefined
  /** A reason to skip the whole suite: the database is not there. */
  readonly skip?: string | undefined
}

/**
 * Checks an implementation of `RunStore` against its contract. Call it at the top of a test file;
 * it defines a suite of tests.
 *
 * @param open - makes an empty store and calls its `open()`; the suite closes it. What has to be
 * cleaned up afterwards belongs into `t.after()` or `options.teardown`.
 *
 * @example
 * ```ts
 * import { MemoryStore } from 'runwright/agent'
 * import { testRunStore } from 'runwright/agent/testing'
 *
 * testRunStore('MemoryStore', async () => {
 *   const store = new MemoryStore()
 *   await store.open()
 *   return store
 * })
 * ```
 */
export function testRunStore(
  name: string,
  open: (t: TestContext) => Promise<RunStore>,
  options: TestRunStoreOptions = {},
): void {
  const { connect, reopen, skip = false, teardown } = options
  const suite: Suite = {
    test(title, body) {
      test(title, async (t) => {
        const store = await open(t)
        try {
          await body(store, t)
        } finally {
          await store.close()
          await teardown?.(store)
        }
      })
    },
  }
  describe(`${name} keeps the contract of RunStore`, { skip }, () => {
    testAppends(suite)
    testReads(suite)
    testHeads(suite)
    testLists(suite)
    testKeys(suite)
    testDeletes(suite)
    testConcurrency(suite)
    testClosing(suite)
    if (reopen !== undefined) testDurability(suite, reopen)
    if (connect !== undefined) testSharing(suite, connect)
  })
}
