import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { FileStore, FileStoreOptions } from 'runwright/agent'
import { testRunStore } from 'runwright/agent/testing'
import { scratch } from '../../helpers/engine.js'
import { openStore } from './store-files.js'

const optionsOf = new WeakMap<object, FileStoreOptions>()

/** The contract of stores, for one in files with these options that loses some at each restart. */
export function testFileStore(
  name: string,
  options: Omit<FileStoreOptions, 'directory'>,
  lose: readonly string[] = [],
): void {
  const open = async (t: TestContext): Promise<FileStore> => {
    const directory = scratch(t)
    const store = await openStore(directory, options)
    optionsOf.set(store, { ...options, directory })
    return store
  }
  testRunStore(name, open, {
    async reopen(store) {
      const { directory, ...rest } = optionsOf.get(store) as FileStoreOptions
      await (store as FileStore).compact()
      await store.close()
      for (const file of lose) rmSync(join(directory, file), { force: true })
      const again = await openStore(directory, rest)
      assert.deepEqual(again.quarantined, [])
      return again
    },
  })
}
