/**
 * The run service: one handler that adds a REST API for agent runs, live event streams and a
 * dashboard to any Node server.
 *
 * @module
 */
export { bearerKeys, bearerToken } from './access/auth.js'
export type { Authorize, AuthorizableRequest, BearerKey, Principal } from './access/auth.js'
export type { LimitSettings } from './access/limits.js'
export type { TenantLimits } from './access/quotas.js'
export { RunServiceClient } from './client/client.js'
export type {
  CallSignal,
  ChangesCall,
  FilesCall,
  ImageCall,
  KeyedCall,
  RunFilter,
} from './client/calls.js'
export type {
  ImageFile,
  RunServiceClientOptions,
  ServiceHealth,
} from './client/client.js'
export type { FollowOptions, ModelDelta } from './client/follow.js'
export type { RunList } from './client/run-pages.js'
export type { RunTree } from './client/tree.js'
export type {
  FailedCall,
  LimitOptions,
  RunServiceOptions,
  ServiceEngine,
  StreamSettings,
} from './config.js'
export { drainOnSignal } from './drain.js'
export type { DrainableServer, DrainOptions } from './drain.js'
export { ProblemError, RunServiceError } from './errors.js'
export type {
  FieldError,
  Problem,
  ProblemCode,
  ProblemOptions,
  FailedChange,
  QuotaUse,
  RunServiceErrorFacts,
} from './errors.js'
export type { HttpRequest, HttpResponse } from './messages/reply.js'
export type { DamageCounts } from './monitoring/damage.js'
export type { HealthStatus } from './monitoring/health.js'
export { jsonLines } from './monitoring/log.js'
export type { LogLine, RequestLine, RunLine, StreamKind, StreamLine } from './monitoring/log.js'
export { createRunService } from './service.js'
export type { NextFunction, RunService } from './service.js'
export type { PumpEnd } from './streams/pump.js'
export type { WebhookEndpoint, WebhookFailure, WebhookOptions } from './webhooks/options.js'
