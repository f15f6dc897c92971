/**
 * A smoke test of PostgresStore where a driver and a server are installed; for the full tests run
 * `npm run test:peers` (test/peers/postgres).
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { PostgresStore, RunEngine, type PgPool } from 'runwright/agent'
import { follow, scratch } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'

/** The part of test/peers/postgres/postgres.ts that this file uses. */
interface Helper {
  readonly noPostgres: string | undefined
  startPostgres(settings?: Record<string, string>): Promise<{
    pool(): PgPool & { end(): Promise<void> }
    remove(): Promise<void>
  }>
}

// A variable hides the import from the compiler: the types of the driver may be missing.
const postgres: string = '../../peers/postgres/postgres.js'
const helper = existsSync(new URL('../../peers/node_modules/pg', import.meta.url))
  ? ((await import(postgres)) as Helper)
  : undefined
const missing =
  helper === undefined
    ? 'the driver is not installed (npm install --no-save --prefix test/peers)'
    : helper.noPostgres

test('a run stored in PostgreSQL is visible to another engine', { skip: missing }, async (t) => {
  const postgres = await (helper as Helper).startPostgres({ fsync: 'off' })
  const pool = postgres.pool()
  t.after(async () => {
    await pool.end()
    await postgres.remove()
  })
  const cwd = scratch(t)
  const open = (): Promise<RunEngine> =>
    RunEngine.open({ store: new PostgresStore({ pool }), roots: [cwd] })
  await using one = await open()
  await using other = await open()
  const { details } = await one.create({ goal: 'shell: true' })
  const events = await follow(other, details.run_id)
  assertInvariants(events)
  assert.equal((await other.get(details.run_id)).status, 'achieved')
})
