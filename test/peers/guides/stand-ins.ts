/** Local servers in place of those in the guides: `api.example`, providers of models, … */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { WebSocketServer } from 'runwright/ws'
import { serve } from '../../helpers/serve.js'
import { anthropicMessage, chatCompletion, type Call, type ModelRequest } from './model.js'

/** The addresses of the stand-ins. */
export interface StandIns {
  /** One HTTP server for all hosts. */
  readonly origin: string
  /** `host:port` of a SOCKS proxy that refuses every client. */
  readonly proxy: string
  close(): Promise<void>
}

type Answer = (
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
) => void | Promise<void>

const json = (response: ServerResponse, value: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

/** Starts all stand-ins. */
export async function startStandIns(): Promise<StandIns> {
  let delivered = (): void => {}
  const hooked = new Promise<void>((resolve) => (delivered = resolve))
  const script: Call[][] = []
  const answers: Readonly<Record<string, Answer>> = {
    '/v1/items': ({ method }, response) => {
      if (method === 'POST') response.setHeader('location', '/v1/items/2')
      json(response, [{ name: 'nut' }], method === 'POST' ? 201 : 200)
    },
    '/v1/lines': (_request, response) => void response.end('one\ntwo\n'),
    '/items': ({ url }, response) => {
      const last = url?.includes('page=2') === true
      if (!last) response.setHeader('link', '</items?page=2>; rel="next"')
      json(response, last ? ['c'] : ['a', 'b'])
    },
    '/news': ({ headers }, response) => {
      if (headers['last-event-id'] !== undefined) return void response.writeHead(204).end()
      response.setHeader('content-type', 'text/event-stream')
      response.end('retry: 10\nid: 1\ndata: it rains\n\n')
    },
    '/reports': (_request, response, body) => json(response, { bytes: body.length }, 201),
    '/large.iso': (_request, response) => void response.end('x'.repeat(1_000_000)),
    '/leaves': (_request, response) =>
      void response.writeHead(302, { location: 'http://db.internal/' }).end(),
    // The turns that the models give next.
    '/script': (_request, response, body) => {
      script.push(...(JSON.parse(body) as Call[][]))
      response.end()
    },
    '/v1/messages': (_request, response, body) =>
      json(response, anthropicMessage(JSON.parse(body) as ModelRequest, script)),
    '/openai/v1/chat/completions': (_request, response, body) => {
      const request = JSON.parse(body) as ModelRequest
      if (request.tools !== undefined || request.response_format !== undefined) {
        return json(response, chatCompletion(request, script))
      }
      response.setHeader('content-type', 'text/event-stream')
      const chunk = {
        id: '1',
        choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: 'stop' }],
      }
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)
    },
    '/mcp': ({ method }, response, body) => {
      if (method !== 'POST') return void response.writeHead(method === 'GET' ? 405 : 200).end()
      const { id, method: called } = JSON.parse(body) as { id?: number; method: string }
      const tools = [{ name: 'search', inputSchema: { type: 'object' } }]
      const hello = { protocolVersion: '2025-06-18', capabilities: {} }
      if (id === undefined) response.writeHead(202).end()
      else {
        const result = called === 'initialize' ? hello : { tools }
        json(response, { jsonrpc: '2.0', id, result })
      }
    },
    '/hooks/runs': (_request, response) => {
      response.end()
      delivered()
    },
    '/hooked': async (_request, response) => {
      await hooked
      response.end()
    },
  }
  const served = await serve(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const answer = answers[new URL(request.url ?? '/', 'http://any.test').pathname]
    if (answer === undefined) json(response, { error: { message: 'not here' } }, 404)
    else await answer(request, response, body)
  })
  const feeds = new WebSocketServer({
    authorize: ({ headers, url }) =>
      headers.authorization !== undefined || url?.startsWith('/events') === true
        ? { context: undefined }
        : { status: 401, body: 'no' },
    onConnection(connection, { url }) {
      const answer = (message: string | Buffer): void => {
        connection.send(message)
        void connection.close()
      }
      connection.onMessage = answer
      if (url?.startsWith('/events') === true) answer('{"seq":7}')
    },
  })
  feeds.attach(served.server)
  const proxy = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.from([5, 0xff])))
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    origin: served.origin,
    proxy: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async close() {
      proxy.close()
      await feeds.close()
      await served.close()
    },
  }
}
