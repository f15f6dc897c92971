/** Checks the types of runwright/ws: this file only has to compile. */
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

// The context that authorize returns is the type of every connection's context.
const sockets = new WebSocketServer({
  authorize: async (request) =>
    request.headers.authorization === undefined ? { status: 401 } : { context: { user: 'ada' } },
  onConnection(connection) {
    yes<Equal<typeof connection.context, { user: string }>>()
  },
})
yes<Equal<typeof sockets, WebSocketServer<{ user: string }>>>()

// Without authorize the context is undefined.
const open = new WebSocketServer()
yes<Equal<typeof open, WebSocketServer<undefined>>>()

async function use(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const connection = await sockets.upgrade(request, socket, head)
  if (connection === null) return
  // Any connection is assignable to one with an unknown context.
  const some: WebSocketConnection = connection
  yes<Equal<typeof some.context, unknown>>()
  for await (const message of connection) yes<Equal<typeof message, WebSocketMessage>>()
  const result = connection.send(prepare('text'))
  yes<Equal<typeof result, SendResult>>()
  const info = await connection.close(CloseCode.GOING_AWAY)
  yes<Equal<typeof info, CloseInfo>>()
  yes<Equal<NonNullable<typeof info.error>['code'], WebSocketErrorCode>>()
  // @ts-expect-error only a server creates connections
  new WebSocketConnection()
  // @ts-expect-error a number is not a message
  connection.send(1)
  // @ts-expect-error the context cannot be replaced
  connection.context = { user: 'eve' }
}

// @ts-expect-error a refusal needs a status, an admission a context
new WebSocketServer({ authorize: () => ({}) })
// @ts-expect-error unknown policy
new WebSocketServer({ backpressure: { policy: 'ignore' } })

export { use }
