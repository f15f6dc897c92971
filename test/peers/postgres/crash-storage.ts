/** Storage in PostgreSQL for the tests of crashes that every store passes. */
import { PostgresStore } from 'runwright/agent'
import { foldersIn, type KillablePlace, type KillableStorage } from '../../agent/crash/storage.js'
import { Children, KILLS } from '../../helpers/kill.js'
import { openDatabase } from './postgres.js'

/** Longer than any test: {@link KillablePlace.bury} ends the leases of processes that died. */
const LEASE_MS = 600_000

const { connection, newSchema, pool } = await openDatabase()
const children = new Children<typeof import('./crash-children.js')>(
  new URL('crash-children.ts', import.meta.url),
)

export const postgresStorage: KillableStorage = {
  name: 'a PostgresStore',
  isShared: true,
  // A child takes longer to connect.
  deaths: Math.ceil(KILLS / 4),
  async place(t) {
    const schema = newSchema()
    const tables = { connection, schema, leaseMs: LEASE_MS }
    const first = new PostgresStore({ pool, schema, listen: false })
    await first.open()
    await first.close()
    const bury: KillablePlace['bury'] = async () => {
      await pool.query(`UPDATE ${schema}.workers SET expires_at = '-infinity'`)
    }
    return {
      ...foldersIn(t),
      bury,
      next: () =>
        Promise.resolve(new PostgresStore({ pool, schema, leaseMs: LEASE_MS, pollMs: 50 })),
      async drive(plan, dieAt) {
        const ending = await children.run('drive', { ...plan, ...tables }, { dieAt })
        await bury()
        return ending
      },
      async driveTree(plan, dieAt) {
        const ending = await children.run('driveTree', { ...plan, ...tables }, { dieAt })
        await bury()
        return ending
      },
      start: (plan) => children.start(t, 'drive', { ...plan, ...tables }, { waits: true }),
    }
  },
}
