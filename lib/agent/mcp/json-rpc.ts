/**
 * JSON-RPC 2.0 as the Model Context Protocol uses it: what a message is, read from JSON that
 * somebody else wrote.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'

/** The id of a request; ours are numbers. */
export type RpcId = string | number

/** A message that came in. */
export type RpcMessage =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'result'; readonly id: RpcId; readonly result: JsonObject }
  | {
      readonly kind: 'error'
      readonly id: RpcId | null
      readonly code: number
      readonly message: string
    }

/** Messages that one JSON value may hold, as a batch of the oldest versions. */
const MAX_BATCH = 100
/** Characters of an error's message that are kept. */
const MAX_MESSAGE = 2_000

/** The messages in a JSON value; what is none is left out. */
export function readMessages(value: JsonValue): RpcMessage[] {
  const list = Array.isArray(value) ? value.slice(0, MAX_BATCH) : [value]
  return list.map(readMessage).filter((message) => message !== null)
}

function readMessage(value: JsonValue): RpcMessage | null {
  if (!isJsonObject(value)) return null
  const { id, method, params, result, error } = value
  const named = typeof id === 'string' || typeof id === 'number' ? id : null
  if (typeof method === 'string') {
    if (named !== null) return { kind: 'request', id: named, method }
    return { kind: 'notification', method, params: isJsonObject(params) ? params : {} }
  }
  if (isJsonObject(error)) {
    const code = typeof error['code'] === 'number' ? error['code'] : 0
    const said = typeof error['message'] === 'string' ? error['message'] : 'no message'
    return { kind: 'error', id: named, code, message: said.slice(0, MAX_MESSAGE) }
  }
  if (named === null || result === undefined) return null
  return { kind: 'result', id: named, result: isJsonObject(result) ? result : {} }
}

/** A request, ready to be sent. */
export function rpcRequest(id: number, method: string, params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id, method, params }
}

/** A notification, ready to be sent. */
export function rpcNotification(method: string, params?: JsonObject): JsonObject {
  return { jsonrpc: '2.0', method, ...(params !== undefined && { params }) }
}

/** An answer to a request of the server. */
export function rpcResult(id: RpcId, result: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id, result }
}

/** The answer to a request for something that we do not offer. */
export function rpcMethodNotFound(id: RpcId): JsonObject {
  return { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }
}
