import { Session, type Profiler } from 'node:inspector'

/** V8 counts no further than about 2 ** 24. */
const MAX_COUNT = 16_000_000

const { indexOf } = String.prototype
type BuiltIn = Record<string, (...args: any[]) => any>
type Cost = (self: any, args: readonly any[], result: any) => number

const whole: Cost = (self) => self.length
/** What a search looks at: up to where it finds something. */
const upTo: Cost = (self, [, from = 0], result) => (result < 0 ? self.length : result + 1) - from
const produced: Cost = (_self, _args, result) => result.length

/** Built-in functions that take longer for longer values, and how much of them they look at. */
const BUILT_IN: readonly (readonly [holder: object, cost: Cost, ...names: string[]])[] = [
  [String.prototype, upTo, 'indexOf'],
  [String.prototype, (self, of) => upTo(self, of, indexOf.call(self, of[0], of[1])), 'includes'],
  [String.prototype, (self, _args, result) => self.length - result, 'lastIndexOf'],
  [String.prototype, whole, 'split', 'replace', 'replaceAll', 'trim', 'toLowerCase', 'normalize'],
  [String.prototype, produced, 'repeat', 'padStart', 'padEnd', 'concat'],
  [Array.prototype, upTo, 'indexOf'],
  [Array.prototype, whole, 'includes', 'shift', 'unshift', 'splice', 'join', 'reverse', 'sort'],
  [Array.prototype, produced, 'slice', 'concat', 'flat'],
  [Buffer.prototype, upTo, 'indexOf'],
  [Buffer.prototype, produced, 'toString'],
  [Buffer, produced, 'concat', 'from'],
  [JSON, (_self, [text]) => text.length, 'parse'],
  [JSON, (_self, _args, result) => result?.length ?? 0, 'stringify'],
  [URLSearchParams.prototype, (self) => self.size, 'get', 'getAll', 'has'],
  [RegExp.prototype, matched, 'exec'],
  // Also what is spread, such as into a copy.
  [Object.getPrototypeOf([][Symbol.iterator]()), () => 1, 'next'],
]

/** What a regular expression looks at that takes linear time. */
function matched(self: RegExp, [text]: readonly any[], result: RegExpExecArray | null): number {
  if (self.sticky) return result?.[0].length ?? 1
  if (result === null) return String(text).length
  return (self.global ? 1 : result.index) + result[0].length
}

/**
 * Counts what the library does, not how long it takes: how often each block of its code runs, by
 * V8's precise coverage, and how much of their values built-in functions look at.
 */
export class StepCounter implements Disposable {
  readonly #session = new Session()
  readonly #restore: (() => void)[] = []
  #builtIn = 0

  constructor() {
    for (const [holder, cost, ...names] of BUILT_IN) {
      for (const name of names) this.#weigh(holder as BuiltIn, name, cost)
    }
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** Steps since the last call. */
  take(): number {
    let steps = this.#builtIn
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
    this.#builtIn = 0
    return steps
  }

  #weigh(holder: BuiltIn, name: string, cost: Cost): void {
    const original = holder[name]!
    const counter = this
    holder[name] = function (this: unknown, ...args: unknown[]): unknown {
      const result: unknown = original.apply(this, args)
      counter.#builtIn += cost(this, args, result)
      return result
    }
    this.#restore.push(() => (holder[name] = original))
  }

  [Symbol.dispose](): void {
    for (const restore of this.#restore) restore()
    this.#session.post('Profiler.stopPreciseCoverage')
    this.#session.disconnect()
  }
}
