/**
 * Work on whole folders. It is done in threads, however small a folder is: a disk that is busy may
 * keep even the removal of an empty one waiting.
 *
 * @module
 */
import { abortListeners } from '../../internal/time.js'
import { WorkspaceError } from '../errors.js'
import { exhausted, isExhausted } from '../exhaustion.js'
import type { CopyReport, CopyTask } from './copy-job.js'
import { failure } from './paths.js'
import { performInThread } from './task-threads.js'

/**
 * Performs a task; resolves when its files are closed.
 *
 * @param folder the one that is worked on; work on several waits in rounds
 * @throws the signal's reason if it aborts while the task waits for a thread.
 */
export async function performTask<Result>(
  task: CopyTask,
  folder: string,
  signal?: AbortSignal,
): Promise<CopyReport<Result>> {
  return (await performInThread(task, folder, signal)) as CopyReport<Result>
}

/** The same for a task that stops when the signal aborts. */
export async function performAbortable<Result>(
  task: (aborted: Int32Array) => CopyTask,
  folder: string,
  signal: AbortSignal | undefined,
): Promise<CopyReport<Result>> {
  const aborted = new Int32Array(new SharedArrayBuffer(4))
  const abort = (): void => void Atomics.store(aborted, 0, 1)
  const listeners = signal && abortListeners(signal)
  listeners?.add(abort)
  try {
    signal?.throwIfAborted()
    const report = await performTask<Result>(task(aborted), folder, signal)
    // A thread that was done just then has not seen the abort.
    return signal?.aborted === true ? { failed: 'aborted' } : report
  } finally {
    listeners?.delete(abort)
  }
}

/** The error of a task that failed; `what` says what was not done. */
export function taskError(
  what: string,
  failed: { readonly error: string; readonly code: string | undefined },
): Error {
  const { error, code } = failed
  const cause = Object.assign(new Error(error), { code })
  if (isExhausted(cause)) return exhausted(what, cause)
  if (code === 'ERR_AGENT_WORKSPACE_LOST') return new WorkspaceError(code, `${what}: ${error}`)
  return failure(`${what}: ${error}`, cause)
}
