/**
 * Operations that the system has refused, and those of this process that have left a folder half
 * changed: the errors for their callers, and the refusal of other operations in such a folder.
 *
 * @module
 */
import { describeError, systemCode } from '../../internal/errors.js'
import { FileOperationError, StoreError } from '../errors.js'
import { isTerminal, type FileOperation } from '../events.js'
import { faultIn, lacksRoom } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import { warn } from '../output.js'
import { HalfAppliedError, NoRoomError } from '../workspace/apply.js'
import { isInside } from '../workspace/paths.js'

/** Operations of this process that have left a folder half changed, by run. */
const unfinished = new Map<string, { readonly folder: string; readonly error: Error }>()

/**
 * Refuses an operation on files of a run, or in a folder, in which another one is not finished.
 *
 * @throws {@link FileOperationError}
 */
export function assertFinished(runId: string, folder: string): void {
  for (const [id, { error, folder: other }] of unfinished) {
    if (id !== runId && !isInside(folder, other) && !isInside(other, folder)) continue
    const message = `files of run ${id} in this folder are half changed: ${reasonFor(error)}`
    throw new FileOperationError('unfinished', message, { cause: error })
  }
}

/** Says once that an operation has left a folder half changed. */
export function noteHalf(log: LogWriter, folder: string, error: Error): void {
  const isNew = !unfinished.has(log.runId)
  unfinished.set(log.runId, { folder, error })
  if (!isNew) return
  const message = `files are half changed, which is tried again: ${reasonFor(error)}`
  warn(`run ${log.runId}: ${message}`)
  const { iteration, status } = log.state.head.details
  if (isTerminal(status)) return
  log.note({ kind: 'log', iteration, payload: { level: 'warn', message } })
}

/** Forgets that: the operation has ended. */
export function noteWhole(runId: string): void {
  unfinished.delete(runId)
}

/** Tells the host how an operation ends that a crash has cut off. */
export function warnOf({ runId }: LogWriter, operation: FileOperation, error: unknown): void {
  const reason = describeError(error)
  warn(`run ${runId}: its ${operation} was cut off and cannot be finished: ${reason}`)
}

function reasonFor(error: Error): string {
  return faultIn(error) ?? describeError(error)
}

/** Runs an operation. @throws the error of {@link failureOf} for faults before its intent */
export async function withFailures<T>(
  operation: FileOperation,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw failureOf(operation, error as Error)
  }
}

/** The error for who has asked for an operation. */
export function failureOf(operation: FileOperation, error: Error, checkpointId?: string): Error {
  // Faults of stores have errors of their own, and so has a folder that is lost.
  const isKnown = error instanceof StoreError || error instanceof FileOperationError
  if (isKnown || !isOfSystem(error)) return error
  const isHalf = error instanceof HalfAppliedError
  const options = { cause: error, checkpointId }
  if (isHalf) {
    const what = `the ${operation} is neither finished nor undone`
    const message = `${what}, and is tried again: ${reasonFor(error)}`
    return new FileOperationError('unfinished', message, options)
  }
  const message = `the ${operation} has changed nothing: ${reasonFor(error)}`
  if (error instanceof NoRoomError) {
    const { missingBytes } = error
    const missing = `${message} (${missingBytes} bytes are missing)`
    return new FileOperationError('no_room', missing, { ...options, missingBytes })
  }
  const problem = faultIn(error) === null ? 'refused' : lacksRoom(error) ? 'no_room' : 'fault'
  return new FileOperationError(problem, message, options)
}

function isOfSystem(error: Error): boolean {
  if (error instanceof HalfAppliedError || error instanceof NoRoomError) return true
  return faultIn(error) !== null || systemCode(error) === 'ERR_AGENT_WORKSPACE'
}
