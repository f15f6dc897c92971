/**
 * A service on PostgreSQL, set up as the documentation says. Arguments: port of the database,
 * schema, root. Prints its own port.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PostgresStore } from 'runwright/agent'
import { createRunService, drainOnSignal } from 'runwright/server'
import { poolTo } from './postgres.js'

const [port, schema = '', root = ''] = process.argv.slice(2)
// Idle connections keep a process alive until this time is over.
const pool = poolTo(Number(port), { idleTimeoutMillis: 3_600_000 })
const service = await createRunService({
  engine: { store: new PostgresStore({ pool, schema }), roots: [root] },
})
const server = createServer(service.handler)
service.attach(server)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
drainOnSignal(service, [server], { graceMs: 1_000, onClosed: () => pool.end() })
process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
