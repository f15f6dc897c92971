/**
 * A WebSocket server (RFC 6455) on top of any Node HTTP server, and a WebSocket client.
 *
 * @module
 */
export { WebSocketServer } from './server.js'
export type { WebSocketServerOptions } from './server.js'
export type { Admission, HandshakeOffer } from './admission.js'
export { WebSocketClient } from './client.js'
export type {
  OpeningResponse,
  WebSocketClientOptions,
  WebSocketConnectOptions,
} from './client.js'
export type { WebSocketClientConfig, WebSocketClientSettings } from './client-config.js'
export type { ConnectTarget } from './client-target.js'
export type { ConnectFunction, WebSocketTlsOptions } from './dial.js'
export type { AttachableServer, AttachOptions } from './attach.js'
export type { UpgradeRequest } from './upgrade-request.js'
export type { PlainResponse, Refusal } from './refusal.js'
export type { OriginPolicy } from './origin.js'
export { WebSocketConnection } from './connection.js'
export type { CloseInfo } from './closing.js'
export type { WebSocketMessage } from './receiver.js'
export type { SendOptions, SendResult } from './sender.js'
export type { MessageChunk, MessageSource, SendStreamOptions } from './fragments.js'
export type { WebSocketBytes } from './payload.js'
export type { RefusedCounters, TrafficCounters, WebSocketServerCounters } from './counters.js'
export { prepare, PreparedMessage } from './prepared-message.js'
export { CloseCode } from './close-codes.js'
export { DEFAULT_CONFIG, DEFAULT_DEFLATE } from './config.js'
export type {
  Backpressure,
  BackpressurePolicy,
  Deflate,
  KeepAlive,
  WebSocketConnectionConfig,
  WebSocketServerConfig,
  WebSocketServerSettings,
  WebSocketSettings,
} from './config.js'
export {
  ConnectError,
  ConnectionLostError,
  HandlerError,
  HandshakeError,
  HandshakeRefusedError,
  InvalidPayloadError,
  MessageTooBigError,
  OpeningError,
  OpeningTimeoutError,
  PolicyError,
  ProtocolError,
  SlowReaderError,
  WebSocketError,
} from './errors.js'
export type { WebSocketErrorCode } from './errors.js'
