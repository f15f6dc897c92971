/**
 * What the methods of an engine take and return.
 *
 * @module
 */
import type { OptionKinds } from '../internal/options.js'
import type { Decision, RunOwner, RunStatus } from './events.js'
import type { TraceContext } from './model.js'
import type { Tool } from './tool.js'

/** Who calls. Without a caller, the host itself is calling and may see every run. */
export interface Caller {
  /** The principal. */
  readonly owner: RunOwner
  /**
   * Aborts when nobody waits for the result any more. What reads files, changes and folders then
   * ends with its reason; other calls pay no attention to it.
   */
  readonly signal?: AbortSignal | undefined
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
  /**
   * Called when all but this allows the run to begin, and not for a request that repeats an earlier
   * one. What it throws is what the call throws: no run begins.
   */
  readonly admit?: (() => void | Promise<void>) | undefined
}

/** What the runs of a tenant use. Those that other runs have started count for these. */
export interface TenantUsage {
  /** Runs that have not ended. */
  readonly openRuns: number
  /** Null when it was not asked for. */
  readonly cost: {
    /**
     * The `estimated_cost_usd` of runs that were created within 24 hours, to the minute, or have
     * not ended. A deleted run counts as long as the process knows of it.
     */
    readonly usd: number
    /** Milliseconds until the oldest of them no longer counts; null when that is not known. */
    readonly freesInMs: number | null
  } | null
}

export const CREATE: OptionKinds<CreateOptions> = {
  caller: 'object', idempotencyKey: 'string', parentRunId: 'string', trace: 'object',
  admit: 'function',
}
export const USAGE: OptionKinds<{ costs?: boolean }> = { costs: 'boolean' }
export const CLOSE: OptionKinds<{ graceMs?: number }> = { graceMs: 'number' }
export const SUBSCRIBE: OptionKinds<{ after?: number; deltas?: boolean }> = {
  after: 'number', deltas: 'boolean',
}

/** Options of `RunEngine.message` and `RunEngine.update`. */
export interface MessageOptions {
  readonly caller?: Caller | undefined
  /** A repeated message to the run with the same key is not sent again. */
  readonly idempotencyKey?: string | undefined
}

export const MESSAGE: OptionKinds<MessageOptions> = { caller: 'object', idempotencyKey: 'string' }
