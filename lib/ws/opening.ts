import type { Duplex } from 'node:stream'
import { abortListeners, raceAbort } from '../internal/time.js'
import { OpeningTimeoutError } from './errors.js'

/**
 * The time from `connect()` to its result. The caller's signal and one deadline at a time end it;
 * then every transport that was opened meanwhile is destroyed, whichever step it had reached.
 */
export class Opening {
  readonly #controller = new AbortController()
  readonly #callerSignal: AbortSignal | undefined
  readonly #transports = new Set<Duplex>()
  readonly #abort = (reason: unknown): void => {
    for (const transport of this.#transports) transport.destroy()
    this.#controller.abort(reason)
  }
  #cancelDeadline = (): void => {}

  /** @throws `signal.reason` when the signal has aborted already. */
  constructor(signal: AbortSignal | undefined) {
    signal?.throwIfAborted()
    this.#callerSignal = signal
    if (signal !== undefined) abortListeners(signal).add(this.#abort)
  }

  /** Aborts when the opening fails. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Adds a transport to destroy on failure. @throws the reason if the opening has failed. */
  own<Transport extends Duplex>(transport: Transport): Transport {
    // It also keeps a reset between two steps from being an uncaught error.
    transport.on('error', ignore)
    this.#transports.add(transport)
    if (this.signal.aborted) transport.destroy()
    this.signal.throwIfAborted()
    return transport
  }

  /** Replaces the deadline: after `ms` the opening fails with an error that says `what`. */
  deadline(ms: number, what: string): void {
    this.#cancelDeadline()
    let turn: NodeJS.Immediate | undefined
    const timer = setTimeout(() => {
      // What arrived while the thread was busy is read first.
      turn = setImmediate(() => {
        this.#abort(new OpeningTimeoutError(`${what} within ${ms} ms`, ms))
      })
    }, ms)
    this.#cancelDeadline = () => {
      clearTimeout(timer)
      clearImmediate(turn)
    }
  }

  /** What is still awaited has a limit of its own. */
  endDeadline(): void {
    this.#cancelDeadline()
  }

  /** Runs the steps, and destroys their transports if one fails. */
  async run<T>(steps: () => Promise<T>): Promise<T> {
    try {
      return await raceAbort(steps(), this.signal)
    } catch (error) {
      this.#abort(error)
      throw error
    } finally {
      this.#cancelDeadline()
      if (this.#callerSignal !== undefined) abortListeners(this.#callerSignal).delete(this.#abort)
    }
  }
}

const ignore = (): void => {}
