import { after, before } from 'node:test'
import type pg from 'pg'
import { PostgresStore } from 'runwright/agent'
import { testRunStore } from 'runwright/agent/testing'
import { noPostgres, startPostgres, type Postgres } from './postgres.js'

let postgres: Postgres | undefined
let pool: pg.Pool | undefined
before(async () => {
  if (noPostgres !== undefined) return
  postgres = await startPostgres({ fsync: 'off' })
  pool = postgres.pool()
})
after(async () => {
  await pool?.end()
  await postgres?.remove()
})

let schemas = 0
const schemaOf = new WeakMap<object, string>()

async function open(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore({ pool: pool as pg.Pool, schema })
  await store.open()
  schemaOf.set(store, schema)
  return store
}

testRunStore('PostgresStore', () => open(`s${(schemas += 1)}`), {
  skip: noPostgres,
  async reopen(store) {
    await store.close()
    return await open(schemaOf.get(store) as string)
  },
  connect: (store) => open(schemaOf.get(store) as string),
})
