import type { Clock } from '../../internal/time.js'
import type { LogWriter } from '../log/writer.js'
import { remainingMs } from '../log/remaining.js'

/** Calls `onOver` when the time budget of a run is used up; the returned function ends that. */
export function limitTime(clock: Clock, log: LogWriter, onOver: () => void): () => void {
  let timer: { cancel(): void } | undefined
  const check = (): void => {
    const left = remainingMs(log.state, log.now())
    if (left === Infinity) return
    // The time may have stood still: see `now()` of the log.
    if (left > 0) timer = clock.setTimeout(check, left)
    else onOver()
  }
  check()
  return () => timer?.cancel()
}
