/**
 * `runwright/http`: an HTTP client in an asynchronous and a blocking version.
 *
 * @module
 */
export {
  del,
  del as delete,
  deleteSync,
  get,
  getSync,
  head,
  headSync,
  options,
  optionsSync,
  patch,
  patchSync,
  post,
  postSync,
  put,
  putSync,
  request,
  requestSync,
  stream,
  streamSync,
} from './api.js'
export { AsyncClient } from './async-client.js'
export type { AsyncClientOptions } from './async-client.js'
export { Auth, BasicAuth, BearerAuth, FunctionAuth } from './auth/auth.js'
export type { AuthFlow, AuthInit } from './auth/auth.js'
export type { BodyChunk, BodyContent, FileLike } from './content/body.js'
export { CacheTransport } from './cache/cache-transport.js'
export type { CacheTransportOptions } from './cache/cache-transport.js'
export { MemoryCacheStore } from './cache/memory-cache-store.js'
export type { MemoryCacheStoreOptions } from './cache/memory-cache-store.js'
export type { CachedResponse, CacheOutcome, CacheRecord, CacheStore } from './cache/store.js'
export { Client } from './client.js'
export type { ClientOptions } from './client.js'
export { Cookies } from './cookies/jar.js'
export type { CookieScope, CookiesInit, CookiesOptions } from './cookies/jar.js'
export type { Cookie } from './cookies/store.js'
export { DigestAuth } from './auth/digest.js'
export type { DigestAuthOptions } from './auth/digest.js'
export { DEFAULT_LIMITS, DEFAULT_TIMEOUTS } from './config.js'
export type { LimitOptions, Limits, TimeoutOptions, Timeouts } from './config.js'
export {
  ClientStateError,
  CloseError,
  ConnectError,
  ConnectTimeoutError,
  CookieConflictError,
  DecodingError,
  HttpError,
  HttpStatusError,
  InvalidBodyError,
  InvalidJsonError,
  InvalidUrlError,
  LocalProtocolError,
  NetworkError,
  PoolTimeoutError,
  ProtocolError,
  ProxyError,
  ReadError,
  ReadTimeoutError,
  RecordingError,
  RefusedStreamError,
  RemoteProtocolError,
  RequestError,
  RequestNotReadError,
  ResponseNotReadError,
  ResponseTooLargeError,
  StreamClosedError,
  StreamConsumedError,
  StreamError,
  TimeoutError,
  TooManyRedirectsError,
  TotalTimeoutError,
  TransportError,
  UnsupportedProtocolError,
  WorkerError,
  WriteError,
  WriteTimeoutError,
} from './errors.js'
export type { HttpErrorCode } from './errors.js'
export type { RequestOptions, SendOptions } from './call-options.js'
export { Headers } from './headers.js'
export type { HeadersInit } from './headers.js'
export type { EventHookOptions, EventHooks } from './hooks.js'
export type { Link } from './links.js'
export type { FileInit, FilesInit, FileTuple } from './content/multipart.js'
export { NetrcAuth, parseNetrc } from './auth/netrc.js'
export type { Netrc, NetrcEntry } from './auth/netrc.js'
export type { BaseClientOptions } from './options.js'
export { parsePublicSuffixes } from './cookies/public-suffixes.js'
export type { PublicSuffixTest } from './cookies/public-suffixes.js'
export type {
  CacheErrorEvent,
  ErrorEvent,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
} from './diagnostics.js'
export type { SseOptions } from './event-source.js'
export type { PaginateOptions } from './pagination.js'
export { DEFAULT_RETRY } from './retry.js'
export type { RetryOptions, RetryPolicy } from './retry.js'
export { Request } from './request.js'
export type { BodyOptions, RequestExtensions, RequestInit } from './request.js'
export { AsyncResponse } from './async-response.js'
export type { ResponsePromise } from './response-promise.js'
export { BaseResponse } from './response.js'
export type {
  DefaultEncoding,
  IterOptions,
  ResponseExtensions,
  ResponseInit,
} from './response.js'
export type { PhaseTimings, Timings } from './timings.js'
export { Response } from './sync-response.js'
export { parseSse, SseParser } from './content/sse-parser.js'
export type { ServerSentEvent } from './content/sse-parser.js'
export type {
  AsyncByteStream,
  AsyncTransport,
  SyncByteStream,
  Transport,
  TransportResponse,
} from './transports/base.js'
export { BlockingTransport } from './transports/blocking/blocking-transport.js'
export { HandlerTransport } from './transports/handler-transport.js'
export type { HandlerTransportOptions, RequestHandler } from './transports/handler-transport.js'
export { HttpTransport } from './transports/http-transport.js'
export type { HttpTransportOptions } from './transports/http-transport.js'
export { RecordingTransport } from './recording/recording-transport.js'
export type { RecordingTransportOptions } from './recording/recording-transport.js'
export type { HarEntry, HarError, HarPair, HarRequest, HarResponse } from './recording/har.js'
export { RetryTransport } from './transports/retry-transport.js'
export { Proxy } from './transports/proxy/proxy.js'
export { proxyConnect } from './transports/proxy/proxy-connect.js'
export type { ProxyConnectOptions, TunnelTarget } from './transports/proxy/proxy-connect.js'
export type { ProxyInit } from './transports/proxy/proxy.js'
export { tlsConnectOptions } from './tls.js'
export type { ClientCertificate, TlsConnectOptions, Verify, VerifyOptions } from './tls.js'
export type { Mounts } from './client-transports.js'
export { MockTransport } from './transports/mock-transport.js'
export type { MockHandler } from './transports/mock-transport.js'
export type { ParamsInit, ParamValue } from './url.js'
