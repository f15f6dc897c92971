/**
 * JSON-RPC 2.0 as the Model Context Protocol uses it: reads messages from untrusted JSON, and
 * builds those that are sent.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { clip } from '../output.js'

/** The id of a request; requests sent from here use numbers. */
export type RpcId = string | number

/** A received message. The id of an error is null when it is missing or invalid. */
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

/** Messages read of one batch, which only the oldest protocol versions have. */
const MAX_BATCH = 100
/** Characters of an error's message that are kept. */
const MAX_MESSAGE = 2_000

/** The messages in a JSON value; anything that is not a message is skipped. */
export function readMessages(value: JsonValue): RpcMessage[] {
  const list = Array.isArray(value) ? value.slice(0, MAX_BATCH) : [value]
  return list.map(readMessage).filter((message) => message !== null)
}

function readMessage(value: JsonValue): RpcMessage | null {
  if (!isJsonObject(value)) return null
  const { id, method, params, result, error } = value
  const validId = typeof id === 'string' || typeof id === 'number' ? id : null
  if (typeof method === 'string') {
    if (validId !== null) return { kind: 'request', id: validId, method }
    return { kind: 'notification', method, params: isJsonObject(params) ? params : {} }
  }
  if (isJsonObject(error)) {
    const code = typeof error['code'] === 'number' ? error['code'] : 0
    const text = typeof error['message'] === 'string' ? error['message'] : 'no message'
    return { kind: 'error', id: validId, code, message: clip(text, MAX_MESSAGE) }
  }
  if (validId === null || result === undefined) return null
  return { kind: 'result', id: validId, result: isJsonObject(result) ? result : {} }
}

export function rpcRequest(id: number, method: string, params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id, method, params }
}

export function rpcNotification(method: string, params?: JsonObject): JsonObject {
  return { jsonrpc: '2.0', method, ...(params !== undefined && { params }) }
}

/** Builds the answer to a request of the server. */
export function rpcResult(id: RpcId, result: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id, result }
}

/** Builds the answer to a request that this client does not support. */
export function rpcMethodNotFound(id: RpcId): JsonObject {
  return { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }
}
