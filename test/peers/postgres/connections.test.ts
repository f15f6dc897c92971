/** How many connections of the host's pool a store takes, and what remains of them at the end. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PostgresStore, RunEngine } from 'runwright/agent'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { Children } from '../../helpers/kill.js'
import { noPostgres, openDatabase, poolTo } from './postgres.js'

const children = new Children<typeof import('./kill-children.js')>(
  new URL('kill-children.ts', import.meta.url),
)

const { connection } = await openDatabase()

describe('connections of PostgresStore', { skip: noPostgres }, () => {
  test('a pool that is too small is refused at open, with the number needed', async (t) => {
    const pool = (max: number) => {
      const opened = poolTo(connection, { max })
      t.after(() => opened.end())
      return opened
    }
    const [one, two, other] = [pool(1), pool(2), pool(1)]
    const refusals = [
      [{ pool: one }, /^max of pool is 1, .* need 2 connections: .*set max to 2 or more/],
      [{ pool: one, listen: false }, /^max of pool is 1, .* need 2 /],
    ] as const
    for (const [options, message] of refusals) {
      const store = new PostgresStore({ ...options, schema: 'small' })
      await assert.rejects(store.open(), { code: 'ERR_AGENT_STORE', message })
      await store.close()
    }
    // A role that migrates needs one connection.
    await new PostgresStore({ pool: one, schema: 'small' }).migrate()

    const first = new PostgresStore({ pool: two, schema: 'small' })
    await first.open()
    const second = new PostgresStore({ pool: two, schema: 'small' })
    await assert.rejects(second.open(), { message: /^max of pool is 2, .* need 3 / })
    await first.close()
    await second.open()
    await second.close()

    const separate = new PostgresStore({ pool: one, listen: other, schema: 'small' })
    await separate.open()
    const beside = new PostgresStore({ pool: two, listen: other, schema: 'small' })
    await assert.rejects(beside.open(), { message: /^max of listen is 1, .* need 2 / })
    await separate.close()
  })

  const smallest = [
    ['2 connections', { max: 2 }],
    ['2 connections without notifications', { max: 2, listen: false }],
    ['1 connection besides a pool to listen', { max: 1, listen: true }],
  ] as const
  for (const [title, { max, ...more }] of smallest) {
    test(`runs, readers and aborts work with ${title}`, async (t) => {
      const root = scratch(t)
      const pool = poolTo(connection, { max })
      const listen = poolTo(connection, { max: 1 })
      const chosen = 'listen' in more ? { listen: more.listen && listen } : {}
      const engine = await RunEngine.open({
        store: new PostgresStore({ pool, schema: 'least', leaseMs: 600_000, ...chosen }),
        roots: [root],
        sealedChecks: 'off',
        defaultModel: 'test:m',
        cwdPolicy: 'allow',
        providers: [testProvider(() => ({}))],
      })
      t.after(async () => {
        await engine.close()
        await Promise.all([pool.end(), listen.end()])
      })
      const logs = await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const { details } = await engine.create({ goal: 'shell: false', max_iterations: 3 })
          if (i % 2 === 1) await engine.abort(details.run_id)
          return await follow(engine, details.run_id)
        }),
      )
      for (const events of logs) assertInvariants(events)
    })
  }

  test('SIGTERM ends a process whose pool has idle connections', async (t) => {
    const place = { connection, schema: 'drained', root: scratch(t) }
    const child = children.start(t, 'serve', place)
    const answer = await fetch(`http://127.0.0.1:${await child.line()}/api/runs`)
    assert.equal(answer.status, 200)
    child.kill('SIGTERM')
    assert.equal((await child.ended).signal, null)
  })
})
