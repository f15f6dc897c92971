import type { Clock } from '../../internal/time.js'
import { isTerminal } from '../events.js'
import { mayPass, MachineWait, type Patience } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import { failureOf } from './steps/finish.js'

/** The waits of one run for the machine, as its log tells them. They are no time of the run. */
export class MachinePause {
  readonly #clock: Clock
  #wait: MachineWait | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Waits after a fault of the machine, until the step may succeed or the signal aborts. */
  async wait(log: LogWriter, error: unknown, signal: AbortSignal): Promise<void> {
    if (this.#wait === undefined) {
      const { message } = failureOf(error, log.state.frozen.request.cwd).failure
      note(log, 'warn', `waiting for the machine: ${message}`)
    }
    this.#wait ??= new MachineWait()
    const pause = this.#wait.pause(error, signal, this.#clock)
    await log.idleWhile(pause).catch(() => undefined)
  }

  /**
   * Repeats what follows something that has happened, and is therefore not to be repeated as a
   * whole; until `signal` aborts, if no other one is given.
   */
  patience(log: LogWriter, signal: AbortSignal): Patience {
    return async (work, stop = signal) => {
      for (;;) {
        try {
          const result = await work()
          this.over(log)
          return result
        } catch (error) {
          if (!mayPass(error) || log.hasFailed) throw error
          await this.wait(log, error, stop)
          stop.throwIfAborted()
        }
      }
    }
  }

  /** Called when a step has succeeded. */
  over(log: LogWriter): void {
    if (this.#wait === undefined) return
    this.end()
    if (!isTerminal(log.state.head.details.status)) note(log, 'info', 'the machine works again')
  }

  end(): void {
    this.#wait?.end()
    this.#wait = undefined
  }
}

function note(log: LogWriter, level: 'info' | 'warn', message: string): void {
  const { iteration } = log.state.head.details
  log.note({ kind: 'log', iteration, payload: { level, message } })
}
