/**
 * Faults of the machine, not of the work: no file descriptor, process or memory is left right now.
 * What meets one neither swallows it nor reports it as a result; it gets to the run loop, which
 * waits and performs the step again.
 *
 * @module
 */
import { backoffBound, backoffDelay, type Backoff } from '../internal/backoff.js'
import { systemClock, type Clock } from '../internal/clock.js'
import { sleep } from '../internal/sleep.js'
import { ExhaustedError } from './errors.js'

/** What the codes of such faults mean, and what to do about them. */
const REMEDIES: Readonly<Record<string, string>> = {
  EMFILE: 'this process has too many files open (raise `ulimit -n`)',
  ENFILE: 'the machine has too many files open',
  EAGAIN: 'no more processes can be started (raise `ulimit -u`)',
  ENOMEM: 'the machine is out of memory',
}
const FAULTS: ReadonlySet<string> = new Set(Object.keys(REMEDIES))
/** Errors that cause each other; longer chains are not followed. */
const MAX_CAUSES = 8

/** The first of these codes that an error or what caused it has; null when there is none. */
export function codeBehind(error: unknown, codes: ReadonlySet<string>): string | null {
  for (let at = error, depth = 0; at instanceof Error && depth < MAX_CAUSES; depth++) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string' && codes.has(code)) return code
    at = at.cause
  }
  return null
}

/** No room on a disk, which somebody may make. */
export const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

/** Is the machine at fault, so that the same may succeed later? */
export function isExhausted(error: unknown): boolean {
  return error instanceof ExhaustedError || codeBehind(error, FAULTS) !== null
}

/** Throws the error again if the machine is at fault: for places that ignore all other errors. */
export function throwIfExhausted(error: unknown): void {
  if (isExhausted(error)) throw error
}

/** The error for work that was not begun because of such a fault. */
export function exhausted(what: string, cause: unknown): ExhaustedError {
  const remedy = REMEDIES[codeBehind(cause, FAULTS) ?? ''] ?? 'the machine is exhausted'
  return new ExhaustedError(`${what}: ${remedy}`, { cause })
}

/**
 * The error of a thread that failed. One that could not start because of such a fault names it in
 * its message only; one that ran out of memory has a code of its own.
 */
export function threadFailure(what: string, error: Error): Error {
  const message = `${what}: ${error.message}`
  const { code } = error as NodeJS.ErrnoException
  const named = [...FAULTS].find((fault) => error.message.endsWith(fault))
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return new ExhaustedError(message, { cause: error })
  if (code === 'ERR_WORKER_INIT_FAILED' && named !== undefined) {
    return exhausted(what, Object.assign(new Error(message, { cause: error }), { code: named }))
  }
  return new Error(message, { cause: error })
}

/** Delays between attempts while the machine is at fault. */
const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }

/** What waits now, in this process. */
const waits = new Set<MachineWait>()

/** Why something waits for the machine in this process; null while nothing does. */
export function machineProblem(): string | null {
  const [first] = waits
  return first === undefined ? null : `waiting for the machine: ${first.problem}`
}

/** One wait for the machine, over any number of attempts. */
export class MachineWait {
  problem = ''
  #attempts = 0

  /**
   * Waits after a failed attempt.
   *
   * @throws the signal's reason.
   */
  async pause(error: unknown, signal: AbortSignal, clock: Clock = systemClock): Promise<void> {
    waits.add(this)
    this.problem = error instanceof Error ? error.message : String(error)
    this.#attempts += 1
    // At least half of each bound: without a minimum, a busy machine would be asked at once.
    const bound = backoffBound(this.#attempts, BACKOFF)
    await sleep(bound / 2 + backoffDelay(this.#attempts, BACKOFF) / 2, signal, clock)
  }

  /** Called when an attempt has succeeded, or there will be none. */
  end(): void {
    waits.delete(this)
  }
}

/**
 * Does what follows something that has happened, and is therefore not to be repeated as a whole:
 * waits while the machine is at fault.
 *
 * @throws what `work` throws otherwise; the signal's reason.
 */
export async function untilPossible<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const wait = new MachineWait()
  try {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!isExhausted(error)) throw error
        await wait.pause(error, signal)
      }
    }
  } finally {
    wait.end()
  }
}
