/**
 * What the calls of a client take: their options, and the requests made from them.
 *
 * @module
 */
import type { ChangeRange, EndReason, RunSort, RunStatus } from '../../agent/index.js'
import type { RequestOptions } from '../../http/index.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { encodeFilePath } from '../messages/file-path.js'

/** Cancellation of a call: it rejects with the signal's reason. */
export interface CallSignal {
  readonly signal?: AbortSignal | undefined
}

/** Options of a call that may be repeated safely. */
export interface KeyedCall extends CallSignal {
  /** 1 to 255 visible ASCII characters. @defaultValue a random one */
  readonly idempotencyKey?: string | undefined
}

/** Two checkpoints to compare. */
export interface ChangesCall extends ChangeRange, CallSignal {}

/** The checkpoint to read from. */
export interface FilesCall extends CallSignal {
  /** A checkpoint id, `start`, `newest`, or `now`, the folder as it is. @defaultValue 'newest' */
  readonly at?: string | undefined
}

/** An image of a run. */
export interface ImageCall extends CallSignal {
  /** `seq` of a `tool_result`, or of `run_created` for the request's images. @defaultValue 1 */
  readonly event?: number | undefined
  /** Counts the images of the event from 0. @defaultValue 0 */
  readonly index?: number | undefined
}

/** Conditions for runs to list. All must hold. */
export interface RunFilter {
  /** Any of these statuses. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined
  /** The exact goal. */
  readonly goal?: string | undefined
  /** The exact model name. */
  readonly modelName?: string | undefined
  /** The exact folder, as in the details; empty: runs without a folder. */
  readonly cwd?: string | undefined
  /** Any of these reasons. */
  readonly endReason?: EndReason | readonly EndReason[] | undefined
  /** Names and values that are all in the metadata of the run; at most 32. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Words that all occur in the goal, the model name or the run id, ignoring case. */
  readonly search?: string | undefined
  /** Only the runs of the tree with this run at its top, that run included. */
  readonly root?: string | undefined
  /** Only the attempts and delegates that this run has started. */
  readonly parent?: string | undefined
  /** `root`: only runs that no other run has started. */
  readonly role?: 'root' | undefined
  /** Only runs created after this time. */
  readonly createdAfter?: Date | string | undefined
  /** Only runs created before this time. */
  readonly createdBefore?: Date | string | undefined
  /** The order; `-` reverses it. @defaultValue '-created_at', the newest first */
  readonly sort?: RunSort | undefined
  /** Runs per page at most, from 1 to 10 000. @defaultValue 10 000; 100 for `runs()` */
  readonly limit?: number | undefined
  /** `next` of an earlier page with the same conditions and order. */
  readonly cursor?: string | undefined
}

const CALL: OptionKinds<CallSignal> = { signal: 'object' }
export const KEYED: OptionKinds<KeyedCall> = { ...CALL, idempotencyKey: 'string' }
export const CHANGES: OptionKinds<ChangesCall> = {
  ...CALL, from: 'string', to: 'string', only: 'string',
}
export const FILES: OptionKinds<FilesCall> = { ...CALL, at: 'string' }
export const IMAGE: OptionKinds<ImageCall> = { ...CALL, event: 'number', index: 'number' }
export const FILTER: OptionKinds<RunFilter> = {
  status: 'any', goal: 'string', modelName: 'string', search: 'string', root: 'string',
  parent: 'string', role: 'string', createdAfter: 'any', createdBefore: 'any', limit: 'number',
  cursor: 'string', cwd: 'string', endReason: 'any', metadata: 'object', sort: 'string',
}

/** @throws TypeError for an unknown option of a call. */
export function signalOf(call: CallSignal): CallSignal {
  checkOptions(call, CALL, 'a call')
  return call
}

/** @throws TypeError for what would be the path of another resource: nothing, `.` and `..`. */
export function pathOf(runId: string, rest = ''): string {
  if (typeof runId !== 'string' || /^\.{0,2}$/.test(runId)) {
    throw new TypeError(`the id of a run must be a string, got ${JSON.stringify(runId)}`)
  }
  return `/api/runs/${encodeURIComponent(runId)}${rest}`
}

/** @throws TypeError for a path that leads to another resource, or nowhere. */
export function filesPath(runId: string, path: string): string {
  if (path === '') return pathOf(runId, '/files')
  const isPath = typeof path === 'string' && !/(^|\/)\.{0,2}(\/|$)/.test(path)
  if (isPath) return pathOf(runId, `/files/${encodeFilePath(path)}`)
  throw new TypeError(`path must be relative, such as src/main.js, got ${JSON.stringify(path)}`)
}

export function rangeOf({ from, only, to, signal }: ChangesCall): RequestOptions {
  return { params: given({ from, to, only }), signal }
}

export function imageOf({ event, index, signal }: ImageCall): RequestOptions {
  return { params: given({ event: event?.toString(), index: index?.toString() }), signal }
}

export function atOf(options: FilesCall, what: string): RequestOptions {
  checkOptions(options, FILES, what)
  return { params: given({ at: options.at }), signal: options.signal }
}

/** Parameters that have a value. */
function given(params: Readonly<Record<string, string | undefined>>): [string, string][] {
  return Object.entries(params).filter((pair): pair is [string, string] => pair[1] !== undefined)
}

export function filterParams(filter: RunFilter): [string, string][] {
  const { status = [], endReason = [], metadata = {}, createdAfter, createdBefore } = filter
  const single = {
    goal: filter.goal,
    model_name: filter.modelName,
    cwd: filter.cwd,
    search: filter.search,
    root: filter.root,
    parent: filter.parent,
    role: filter.role,
    created_after: createdAfter instanceof Date ? createdAfter.toISOString() : createdAfter,
    created_before: createdBefore instanceof Date ? createdBefore.toISOString() : createdBefore,
    sort: filter.sort,
    limit: filter.limit?.toString(),
    cursor: filter.cursor,
  }
  const each = (name: string, values: string | readonly string[]): [string, string][] =>
    [values].flat().map((value) => [name, value])
  return [
    ...each('status', status),
    ...each('end_reason', endReason),
    ...Object.entries(metadata).flatMap(([name, value]) => each(`metadata.${name}`, value)),
    ...given(single),
  ]
}
