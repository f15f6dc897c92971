/** Server-sent events that resume where the stream broke off, and retries. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AsyncClient } from 'runwright/http'

let failures = 0
const server = createServer((request, response) => {
  if (request.url === '/flaky') {
    response.statusCode = failures++ < 2 ? 503 : 200
    response.end('at last')
    return
  }
  const last = Number(request.headers['last-event-id'] ?? 0)
  if (last >= 3) {
    response.statusCode = 204
    response.end()
    return
  }
  response.setHeader('content-type', 'text/event-stream')
  response.end(`retry: 10\nid: ${last + 1}\nevent: tick\ndata: number ${last + 1}\n\n`)
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const { port } = server.address() as AddressInfo

{
  await using client = new AsyncClient({
    baseUrl: `http://127.0.0.1:${port}`,
    retry: { retries: 3, backoffMs: 10 },
  })
  console.log((await client.get('/flaky')).text)
  for await (const event of client.sse('/events')) console.log(event.id, event.data)
}
server.close()
