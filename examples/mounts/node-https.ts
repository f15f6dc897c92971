/**
 * The service in a `node:https` server, below /agents.
 *
 *   openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem
 *   TLS_KEY=key.pem TLS_CERT=cert.pem node … examples/mounts/node-https.ts
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
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

const tls = {
  key: readFileSync(process.env['TLS_KEY'] ?? 'key.pem'),
  cert: readFileSync(process.env['TLS_CERT'] ?? 'cert.pem'),
}
const server = createServer(tls, (request, response) => {
  service.handler(request, response, () => {
    const found = request.url === '/hello'
    response.writeHead(found ? 200 : 404).end(found ? 'hello from the host' : 'not found')
  })
})
service.attach(server)

server.listen(Number(process.env['PORT'] ?? 8443), '127.0.0.1', () => {
  console.log(`https://127.0.0.1:${(server.address() as AddressInfo).port}/agents/`)
})
process.once('SIGTERM', () => void service.close().finally(() => server.close()))
