import { join } from 'node:path'
import { FileStore, MemoryStore, type ObjectStore } from 'runwright/agent'
import { testObjectStore } from 'runwright/agent/testing'
import { scratch } from '../../helpers/engine.js'
import { damagePacked } from './store-files.js'

testObjectStore('MemoryStore', async () => {
  const store = new MemoryStore()
  await store.open()
  return store.objects
})

const directories = new Map<ObjectStore, string>()
const stores = new Map<ObjectStore, FileStore>()

async function open(directory: string): Promise<ObjectStore> {
  const store = new FileStore({ directory, sync: 'none', onWarning: () => {} })
  await store.open()
  stores.set(store.objects, store)
  directories.set(store.objects, directory)
  return store.objects
}

testObjectStore('FileStore', (t) => open(scratch(t, 'in memory')), {
  reopen: async (objects) => {
    await stores.get(objects)?.close()
    return await open(directories.get(objects) ?? '')
  },
  damage: async (objects, hash) => {
    const folder = join(directories.get(objects) ?? '', 'objects')
    await damagePacked(folder, hash)
  },
  teardown: async (objects) => await stores.get(objects)?.close(),
})
