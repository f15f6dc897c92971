/**
 * The contract of `ObjectStore` as tests for `node:test`.
 *
 * @module
 */
import { describe, test, type TestContext } from 'node:test'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { ObjectStore } from '../object-store.js'
import { testObjectContents, testObjectDamage } from './object-contract/contents.js'
import { testObjectLifetimes } from './object-contract/lifetimes.js'
import { testObjectSharing } from './object-contract/sharing.js'
import type { ObjectSuite } from './object-contract/suite.js'

/** Options of {@link testObjectStore}. */
export interface TestObjectStoreOptions {
  /**
   * Closes the store and opens the same data again, as a restart would. Omit it for stores that are
   * not durable: the tests of durability are then left out.
   */
  readonly reopen?: ((objects: ObjectStore, t: TestContext) => Promise<ObjectStore>) | undefined
  /**
   * Opens another store on the same data, as another process would. Omit it for stores that one
   * process uses alone: the tests of sharing are then left out.
   */
  readonly connect?: ((objects: ObjectStore, t: TestContext) => Promise<ObjectStore>) | undefined
  /**
   * Changes the stored data of one blob, which exists. Omit it where that cannot be done: the tests
   * of damage are then left out.
   */
  readonly damage?: ((objects: ObjectStore, hash: string) => Promise<void> | void) | undefined
  /** Called after each test once its store is closed, for example to empty a bucket. */
  readonly teardown?: ((objects: ObjectStore) => Promise<void> | void) | undefined
  /** Why to skip the whole suite, for example because the server is missing. */
  readonly skip?: string | undefined
}

const OPTIONS: OptionKinds<TestObjectStoreOptions> = {
  reopen: 'function', connect: 'function', damage: 'function', teardown: 'function',
  skip: 'string',
}

/**
 * Defines a suite of tests that checks an implementation of `ObjectStore` against its contract.
 * Call it at the top level of a test file.
 *
 * @param open - creates an empty store; the suite closes it. Clean up after it in `t.after()` or
 * `options.teardown`.
 * @throws TypeError that names an invalid argument or option.
 *
 * @example
 * ```ts
 * import { MemoryStore } from 'runwright/agent'
 * import { testObjectStore } from 'runwright/agent/testing'
 *
 * testObjectStore('the objects of MemoryStore', async () => new MemoryStore().objects)
 * ```
 */
export function testObjectStore(
  name: string,
  open: (t: TestContext) => Promise<ObjectStore>,
  options: TestObjectStoreOptions = {},
): void {
  checkOptions(options, OPTIONS, 'testObjectStore()')
  if (typeof name !== 'string' || typeof open !== 'function') {
    throw new TypeError('testObjectStore() needs a name, and a function that opens an empty store')
  }
  const { connect, damage, reopen, skip = false, teardown } = options
  const suite: ObjectSuite = {
    test(title, body) {
      test(title, async (t) => {
        const objects = await open(t)
        try {
          await body(objects, t)
        } finally {
          await objects.close?.()
          await teardown?.(objects)
        }
      })
    },
  }
  describe(`${name} keeps the contract of ObjectStore`, { skip }, () => {
    testObjectContents(suite)
    testObjectLifetimes(suite, reopen)
    if (damage !== undefined) testObjectDamage(suite, damage)
    if (connect !== undefined) testObjectSharing(suite, connect)
  })
}
