import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext } from 'node:test'
import { FileStore, type FileStoreOptions } from '../../../lib/agent/stores/file.js'
import { testRunStore } from '../../../lib/agent/testing/test-run-store.js'

const directories = new WeakMap<object, FileStoreOptions>()

function suite(name: string, options: Omit<FileStoreOptions, 'directory'>): void {
  const open = async (t: TestContext): Promise<FileStore> => {
    const directory = mkdtempSync(join(tmpdir(), 'runwright-store-'))
    t.after(() => rmSync(directory, { recursive: true, force: true }))
    return openAt({ ...options, directory })
  }
  testRunStore(name, open, {
    async reopen(store) {
      await store.close()
      return openAt(directories.get(store) as FileStoreOptions)
    },
  })
}

async function openAt(options: FileStoreOptions): Promise<FileStore> {
  const store = new FileStore(options)
  directories.set(store, options)
  await store.open()
  assert.deepEqual(store.quarantined, [])
  return store
}

suite('FileStore', {})
suite('FileStore with small segments', { segmentBytes: 1024 })
suite('FileStore without sync', { sync: 'none', segmentBytes: 4096 })
