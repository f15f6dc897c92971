import type { LogWriter } from '../log/writer.js'
import type { RunDetails, RunHead } from '../run-details.js'

/** What is done with the log of a run while nothing else may happen to the run. */
export type OnLog<T> = (log: LogWriter, signal: AbortSignal) => Promise<T>

/** The logs of runs that wait at a gate or have ended, for what is done with their files. */
export interface RunLogs {
  /**
   * Calls `work` with the log of such a run. Until it settles, answers, aborts and the deadline of
   * the gate wait; with `folder`, no run works in that folder, in one above or in one below. The
   * signal aborts when the log must not be used any more, or the engine closes.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} with `live` when the run works, or when
   * another operation on its files does not end; {@link CwdBusyError}; what `work` throws.
   */
  operate<T>(stored: RunHead, folder: string | null, work: OnLog<T>): Promise<T>
}

/**
 * Calls `hold`, which does work on the log of a run. If the work leaves an operation open, rejects
 * at once, and `hold` settles when that is finished.
 */
export function operateOn<T>(
  files: RunFiles | null,
  work: OnLog<T>,
  hold: (work: OnLog<T>) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const finishing: OnLog<T> = async (log, signal) => {
      try {
        return await work(log, signal)
      } catch (error) {
        const isOpen = log.state.head.operation !== null
        if (isOpen && !log.hasFailed && !signal.aborted) {
          reject(error)
          await files?.finish(log, signal)
        }
        throw error
      }
    }
    hold(finishing).then(resolve, reject)
  })
}

/** What a run does with its folder by itself, as far as its drivers need to know. */
export interface RunFiles {
  /**
   * Finishes the restore or apply that had begun when the log ended; does nothing without one.
   *
   * @throws {@link StoreError} when the log cannot be written; the signal's reason.
   */
  finish(log: LogWriter, signal: AbortSignal): Promise<void>
  /**
   * Applies the changes of an isolated run whose goal is achieved, if its request says so. What
   * prevents that is told in the log, and the changes stay pending.
   *
   * @param hold keeps the folder for the run until it ends; false while another one has it
   * @throws {@link StoreError} when the log cannot be written; the signal's reason.
   */
  applyAchieved(log: LogWriter, hold: () => Promise<boolean>, signal: AbortSignal): Promise<void>
  /**
   * Removes the copy of an isolated run that needs it no longer, and never rejects. The run is
   * driven no longer.
   */
  left(details: RunDetails): Promise<void>
}

/** The copies in which isolated runs work. */
export interface Copies {
  /** The folder of a run's copy on this machine; null without one. */
  find(runId: string): Promise<{ readonly root: string } | null>
  /** Removes the copy of a run, if there is one. */
  remove(runId: string): Promise<void>
  /** The same, without waiting until its files are gone. */
  removeSoon(runId: string): Promise<void>
}
