/** The service in a `node:http` server, below /agents, beside the host's own routes. */
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

const server = createServer((request, response) => {
  // The third argument is called for all paths that are not below /agents.
  service.handler(request, response, () => {
    const found = request.url === '/hello'
    response.writeHead(found ? 200 : 404).end(found ? 'hello from the host' : 'not found')
  })
})
service.attach(server)

server.listen(Number(process.env['PORT'] ?? 8000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/agents/`)
})
process.once('SIGTERM', () => void service.close().finally(() => server.close()))
