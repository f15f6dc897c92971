/**
 * What the methods of an engine take and return.
 *
 * @module
 */
import type { OptionKinds } from '../internal/options.js'
import type { Decision, RunOwner, RunStatus } from './events.js'
import type { TraceContext } from './model.js'
import type { Tool } from './tool.js'

/** The principal of a call. Without one, the host itself is calling and may see every run. */
export interface Caller {
  readonly owner: RunOwner
}

/** The result of `RunEngine.resume`. */
export interface ResumeResult {
  readonly run_id: string
  readonly status: RunStatus
  readonly decision: Decision
  readonly gate_id: string
}

/** A goal as shown to people. */
export interface GoalInfo {
  readonly name: string
  readonly description: string
  readonly usage: string
}

/** A tool as shown to people. */
export type ToolInfo = Pick<Tool, 'name' | 'description' | 'effect'>

/** Options of `RunEngine.create`. */
export interface CreateOptions {
  readonly caller?: Caller | undefined
  /** A repeated request with the same key within 24 hours returns the first run. */
  readonly idempotencyKey?: string | undefined
  readonly parentRunId?: string | undefined
  /**
   * The trace that the request belongs to, from its headers `traceparent` and `tracestate`; ignored
   * when malformed. The run's spans and model calls belong to it.
   */
  readonly trace?: TraceContext | undefined
}

export const CREATE: OptionKinds<CreateOptions> = {
  caller: 'object', idempotencyKey: 'string', parentRunId: 'string', trace: 'object',
}
export const CLOSE: OptionKinds<{ graceMs?: number }> = { graceMs: 'number' }
export const SUBSCRIBE: OptionKinds<{ after?: number; deltas?: boolean }> = {
  after: 'number', deltas: 'boolean',
}

/** Options of `RunEngine.message`. */
export interface MessageOptions {
  readonly caller?: Caller | undefined
  /** A repeated message to the run with the same key returns the first one's id. */
  readonly idempotencyKey?: string | undefined
}

export const MESSAGE: OptionKinds<MessageOptions> = { caller: 'object', idempotencyKey: 'string' }
