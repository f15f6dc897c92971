/** What the types of runwright/ws promise; it only has to compile. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  type CloseInfo,
  CloseCode,
  prepare,
  type SendResult,
  WebSocketConnection,
  type WebSocketErrorCode,
  type WebSocketMessage,
  WebSocketServer,
} from 'runwright/ws'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(value?: T): T | undefined => value

// The context of authorize is that of every connection.
const sockets = new WebSocketServer({
  authorize: async (request) =>
    request.headers.authorization === undefined ? { status: 401 } : { context: { user: 'ada' } },
  onConnection(connection) {
    yes<Equal<typeof connection.context, { user: string }>>()
  },
})
yes<Equal<typeof sockets, WebSocketServer<{ user: string }>>>()

// Without authorize there is none.
const open = new WebSocketServer()
yes<Equal<typeof open, WebSocketServer<undefined>>>()

async function use(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const connection = await sockets.upgrade(request, socket, head)
  if (connection === null) return
  // Any connection is one whose context is unknown.
  const some: WebSocketConnection = connection
  yes<Equal<typeof some.context, unknown>>()
  for await (const message of connection) yes<Equal<typeof message, WebSocketMessage>>()
  const result = connection.send(prepare('text'))
  yes<Equal<typeof result, SendResult>>()
  const info = await connection.close(CloseCode.GOING_AWAY)
  yes<Equal<typeof info, CloseInfo>>()
  yes<Equal<NonNullable<typeof info.error>['code'], WebSocketErrorCode>>()
  // @ts-expect-error a connection is made by a server only
  new WebSocketConnection()
  // @ts-expect-error numbers are no messages
  connection.send(1)
  // @ts-expect-error the context cannot be replaced
  connection.context = { user: 'eve' }
}

// @ts-expect-error a refusal needs a status, an admission a context
new WebSocketServer({ authorize: () => ({}) })
// @ts-expect-error policies are named
new WebSocketServer({ backpressure: { policy: 'ignore' } })

export { use }
