import { Session, type Profiler } from 'node:inspector'

/** V8 counts no further than about 2 ** 24. */
const MAX_COUNT = 16_000_000

/**
 * Counts what the library does, not how long it takes: how often each block of its code runs, by
 * V8's precise coverage. What regular expressions and built-in functions do is not counted.
 */
export class StepCounter implements Disposable {
  readonly #session = new Session()

  constructor() {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** Blocks that ran since the last call. */
  take(): number {
    let steps = 0
    // The answer comes before `post` returns.
    this.#session.post(
      'Profiler.takePreciseCoverage',
      (error: Error | null, { result }: Profiler.TakePreciseCoverageReturnType) => {
        if (error !== null) throw error
        for (const { url, functions } of result) {
          if (!/\/(?:lib|dist)\//.test(url) || url.includes('node_modules')) continue
          for (const { count } of functions.flatMap(({ ranges }) => ranges)) {
            steps += count < MAX_COUNT ? count : Infinity
          }
        }
      },
    )
    return steps
  }

  [Symbol.dispose](): void {
    this.#session.post('Profiler.stopPreciseCoverage')
    this.#session.disconnect()
  }
}
