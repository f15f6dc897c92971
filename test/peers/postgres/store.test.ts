import { after, before, test } from 'node:test'
import type pg from 'pg'
import { PostgresStore } from '../../../lib/agent/stores/postgres.js'
import { testRunStore } from '../../../lib/agent/testing/test-run-store.js'
import { noPostgres, startPostgres, type Postgres } from './postgres.js'

if (noPostgres !== undefined) {
  test('PostgresStore', { skip: noPostgres })
} else {
  let postgres: Postgres
  let pool: pg.Pool
  before(async () => {
    postgres = await startPostgres({ fsync: 'off' })
    pool = postgres.pool()
  })
  after(async () => {
    await pool.end()
    await postgres.remove()
  })
  let schemas = 0
  const stores = new WeakMap<object, string>()
  const open = async (schema: string): Promise<PostgresStore> => {
    const store = new PostgresStore({ pool, schema })
    await store.open()
    stores.set(store, schema)
    return store
  }
  testRunStore('PostgresStore', () => open(`s${(schemas += 1)}`), {
    async reopen(store) {
      await store.close()
      return await open(stores.get(store) as string)
    },
  })
}
