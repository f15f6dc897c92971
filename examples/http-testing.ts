/** Tests without a network: a function, or your own application, answers the requests. */
import assert from 'node:assert/strict'
import { AsyncClient, Client, HandlerTransport, MockTransport, Response } from 'runwright/http'

const transport = new MockTransport((request) => {
  return request.url.pathname === '/ping'
    ? new Response(200, { json: { pong: true } })
    : new Response(404)
})
await using client = new AsyncClient({ transport, baseUrl: 'http://api.test' })
assert.deepEqual((await client.get('/ping')).json(), { pong: true })
assert.equal((await client.get('/other')).statusCode, 404)
assert.deepEqual(transport.requests.map(({ url }) => url.pathname), ['/ping', '/other'])

using blocking = new Client({
  transport: new HandlerTransport((request, response) => response.end(`hello ${request.url}`)),
  baseUrl: 'http://app.test',
})
console.log(blocking.get('/world').text)
