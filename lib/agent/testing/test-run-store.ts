/**
 * The contract of `RunStore` as tests for `node:test`.
 *
 * @module
 */
import { describe, test, type TestContext } from 'node:test'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { RunStore } from '../store.js'
import { testAppends } from './store-contract/appends.js'
import { testClosing, testConcurrency } from './store-contract/concurrency.js'
import { testDeletes } from './store-contract/deletes.js'
import { testDurability } from './store-contract/durability.js'
import { testFolders } from './store-contract/folders.js'
import { testHeads } from './store-contract/heads.js'
import { testDurableHoldouts, testHoldouts } from './store-contract/holdouts.js'
import { testKeys } from './store-contract/keys.js'
import { testListOrders } from './store-contract/list-orders.js'
import { testLists } from './store-contract/lists.js'
import { testReads } from './store-contract/reads.js'
import { testSharing } from './store-contract/sharing.js'
import type { Suite } from './store-contract/suite.js'

/** Options of {@link testRunStore}. */
export interface TestRunStoreOptions {
  /**
   * Closes the store and opens the same data again, as a restart would. Omit it for stores that are
   * not durable: the tests of durability are then left out.
   */
  readonly reopen?: ((store: RunStore, t: TestContext) => Promise<RunStore>) | undefined
  /**
   * Opens another store on the same data, as another process would; the suite closes it. Omit it
   * for stores that one process uses alone: the tests of sharing are then left out.
   */
  readonly connect?: ((store: RunStore, t: TestContext) => Promise<RunStore>) | undefined
  /** Called after each test once its store is closed, for example to drop a schema. */
  readonly teardown?: ((store: RunStore) => Promise<void> | void) | undefined
  /** Why to skip the whole suite, for example because the database is missing. */
  readonly skip?: string | undefined
}

const OPTIONS: OptionKinds<TestRunStoreOptions> = {
  reopen: 'function', connect: 'function', teardown: 'function', skip: 'string',
}

/**
 * Defines a suite of tests that checks an implementation of `RunStore` against its contract. Call
 * it at the top level of a test file.
 *
 * @param open - creates an empty store and calls its `open()`; the suite closes it. Clean up after
 * it in `t.after()` or `options.teardown`.
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
  checkOptions(options, OPTIONS, 'testRunStore()')
  if (typeof name !== 'string' || typeof open !== 'function') {
    throw new TypeError('testRunStore() needs a name, and a function that opens an empty store')
  }
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
    testListOrders(suite)
    testKeys(suite)
    testFolders(suite)
    testDeletes(suite)
    testHoldouts(suite)
    testConcurrency(suite)
    testClosing(suite)
    if (reopen !== undefined) {
      testDurability(suite, reopen)
      testDurableHoldouts(suite, reopen)
    }
    if (connect !== undefined) testSharing(suite, connect)
  })
}
