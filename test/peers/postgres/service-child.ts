/**
 * A service on PostgreSQL, set up as the documentation says. Arguments: JSON of the connection,
 * schema, root. Prints its own port.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PostgresStore } from 'runwright/agent'
import { createRunService, drainOnSignal } from 'runwright/server'
import { poolTo, type Connection } from './postgres.js'

const [connection = '', schema = '', root = ''] = process.argv.slice(2)
// Idle connections keep a process alive until this time is over.
const pool = poolTo(JSON.parse(connection) as Connection, { idleTimeoutMillis: 3_600_000 })
const service = await createRunService({
  engine: { store: new PostgresStore({ pool, schema }), roots: [root] },
})
const server = createServer(service.handler)
service.attach(server)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
drainOnSignal(service, [server], { graceMs: 1_000, onClosed: () => pool.end() })
process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
