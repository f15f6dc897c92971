/**
 * The service over HTTP/2, below /agents. Event streams use WebSocket over HTTP/2 (RFC 8441) if the
 * client supports it, otherwise over HTTP/1.1 on the same port (`allowHTTP1`).
 *
 *   TLS_KEY=key.pem TLS_CERT=cert.pem node … examples/mounts/node-http2.ts
 */
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
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

const server = createSecureServer(
  {
    key: readFileSync(process.env['TLS_KEY'] ?? 'key.pem'),
    cert: readFileSync(process.env['TLS_CERT'] ?? 'cert.pem'),
    allowHTTP1: true,
  },
  (request, response) => {
    service.handler(request, response, () => {
      const found = request.url === '/hello'
      response.writeHead(found ? 200 : 404).end(found ? 'hello from the host' : 'not found')
    })
  },
)
service.attach(server)

server.listen(Number(process.env['PORT'] ?? 8443), '127.0.0.1', () => {
  console.log(`https://127.0.0.1:${(server.address() as AddressInfo).port}/agents/`)
})
process.once('SIGTERM', () => void service.close().finally(() => server.close()))
