/** The service in a Hono app on its Node server, below /agents. */
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService } from 'runwright/server'

const service = await createRunService({
  basePath: '/agents',
  engine: {
    store: new MemoryStore(),
    roots: [process.cwd()],
    providers: [repairModel()],
    defaultModel: 'builtin:repair',
  },
})

const app = new Hono()
app.get('/hello', (context) => context.text('hello from the host'))

const listener = getRequestListener(app.fetch)

// The service handles /agents; all other requests go to the app.
const server = createServer((request, response) => {
  service.handler(request, response, () => void listener(request, response))
})
server.listen(Number(process.env['PORT'] ?? 8000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/agents/`)
})
service.attach(server)
process.once('SIGTERM', () => void service.close().finally(() => server.close()))
