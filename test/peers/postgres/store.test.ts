import { PostgresStore } from 'runwright/agent'
import { testRunStore } from 'runwright/agent/testing'
import { noPostgres, openDatabase } from './postgres.js'

const { newSchema, pool } = await openDatabase()
const schemaOf = new WeakMap<object, string>()

async function open(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore({ pool, schema })
  await store.open()
  schemaOf.set(store, schema)
  return store
}

testRunStore('PostgresStore', () => open(newSchema()), {
  skip: noPostgres,
  async reopen(store) {
    await store.close()
    return await open(schemaOf.get(store) as string)
  },
  connect: (store) => open(schemaOf.get(store) as string),
})
