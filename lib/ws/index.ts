/**
 * A WebSocket server (RFC 6455) for any HTTP server of Node.
 *
 * @module
 */
export { WebSocketServer } from './server.js'
export type { Admission, HandshakeOffer, WebSocketServerOptions } from './server.js'
export type { AttachableServer, AttachOptions, PlainResponse } from './attach.js'
export type { Refusal, UpgradeRequest } from './handshake.js'
export { WebSocketConnection } from './connection.js'
export type { SendOptions } from './connection.js'
export type { CloseInfo } from './close-state.js'
export type { WebSocketMessage } from './receiver.js'
export type { SendResult } from './sender.js'
export { prepare, PreparedMessage } from './prepared-message.js'
export { CloseCode } from './close-codes.js'
export { DEFAULT_CONFIG, DEFAULT_DEFLATE } from './config.js'
export type {
  Backpressure,
  BackpressurePolicy,
  Deflate,
  KeepAlive,
  OriginPolicy,
  WebSocketServerConfig,
  WebSocketServerSettings,
} from './config.js'
export {
  ConnectionLostError,
  HandlerError,
  InvalidPayloadError,
  MessageTooBigError,
  PolicyError,
  ProtocolError,
  SlowReaderError,
  WebSocketError,
} from './errors.js'
export type { WebSocketErrorCode } from './errors.js'
