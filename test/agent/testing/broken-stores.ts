/** Runs the contract on stores that each violate it in one way; see test-run-store.slow.test.ts. */
import { MemoryStore, type RunRecord } from 'runwright/agent'
import { testRunStore } from 'runwright/agent/testing'
import { handleOn } from './shared-memory.js'

/** A correct store with some methods replaced. */
function broken(name: string, change: (store: MemoryStore) => Partial<MemoryStore>): void {
  testRunStore(name, async () => {
    const store = new MemoryStore()
    await store.open()
    return Object.assign(store, change(store))
  })
}

broken('accepts gaps', (store) => {
  const append = store.append.bind(store)
  return {
    append: async (runId, records) => {
      const last = (await store.read(runId, 0, 1e6)).at(-1)?.seq ?? 0
      await append(runId, records.map((record, i): RunRecord => ({ ...record, seq: last + 1 + i })))
    },
  }
})
broken('stores half of a refused append', (store) => {
  const append = store.append.bind(store)
  return {
    append: async (runId, records) => {
      for (const record of records) await append(runId, [record])
    },
  }
})
broken('ignores the limit of a read', (store) => {
  const read = store.read.bind(store)
  return { read: (runId, after) => read(runId, after, 1e9) }
})
broken('finds keys of other owners', (store) => {
  const find = store.findByKey.bind(store)
  return { findByKey: (owner, key, since) => find({ ...owner, tenant: null }, key, since) }
})
broken('finds runs of all tenants in a folder', (store) => {
  const find = store.hasForeignRun.bind(store)
  return { hasForeignRun: (folder) => find(folder, 'nobody') }
})
broken('ignores the conditions of a list', (store) => {
  const list = store.list.bind(store)
  return { list: ({ limit, cursor }) => list({ limit, cursor }) }
})
broken('deletes nothing', () => ({ delete: () => Promise.resolve() }))
broken('keeps working after close', () => ({ close: () => Promise.resolve() }))

const opened = async (): Promise<MemoryStore> => {
  const store = new MemoryStore()
  await store.open()
  return store
}
testRunStore('loses everything in a restart', opened, { reopen: opened })
testRunStore('shares nothing', async () => handleOn(await opened()), { connect: opened })
