/** The asynchronous client: JSON, errors, time limits, streaming. It needs no network. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AsyncClient, HttpStatusError } from 'runwright/http'

const server = createServer((request, response) => {
  if (request.url === '/v1/lines') {
    for (const line of ['one', 'two', 'three']) response.write(`${line}\n`)
    response.end()
  } else if (request.url === '/v1/items' && request.method === 'POST') {
    response.statusCode = 201
    response.setHeader('content-type', 'application/json')
    request.pipe(response)
  } else {
    response.statusCode = 404
    response.end()
  }
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const { port } = server.address() as AddressInfo

{
  await using client = new AsyncClient({
    baseUrl: `http://127.0.0.1:${port}/v1`,
    timeout: { connect: 2_000, read: 5_000, total: 10_000 },
  })

  const created = await client.post('/items', { json: { name: 'nut' } })
  console.log(created.statusCode, created.raiseForStatus().json<{ name: string }>().name)

  await using lines = await client.stream('GET', '/lines')
  for await (const line of lines.iterLines()) console.log(line)

  try {
    const missing = await client.get('/nowhere')
    missing.raiseForStatus()
  } catch (error) {
    if (!(error instanceof HttpStatusError)) throw error
    console.log(error.code, error.statusCode)
  }
}
server.close()
