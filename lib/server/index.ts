/**
 * The run service: one handler that gives any Node server a REST interface to agent runs, their
 * live event streams and a dashboard.
 *
 * @module
 */
export { bearerKeys, bearerToken } from './auth.js'
export type { Authorize, AuthorizableRequest, BearerKey, Principal } from './auth.js'
export { RunServiceClient } from './client.js'
export type {
  CallSignal,
  RunFilter,
  RunList,
  RunServiceClientOptions,
  ServiceHealth,
} from './client.js'
export type { FollowOptions, ModelDelta } from './client-events.js'
export type { FailedCall, RunServiceOptions, ServiceEngine, StreamSettings } from './config.js'
export { ProblemError, RunServiceError } from './errors.js'
export type { FieldError, Problem, ProblemCode, ProblemOptions } from './errors.js'
export type { HttpRequest, HttpResponse } from './http.js'
export { createRunService } from './service.js'
export type { NextFunction, RunService } from './service.js'
