import { StoreError, type ObjectStore, type RunStore } from 'runwright/agent'

/**
 * What one process has of a store. From a given call on it is dead: what it asks for is never
 * answered, so that it does nothing more. The last call may have had its effect.
 */
export class MortalProcess {
  readonly store: RunStore
  readonly died: Promise<void>
  #left = Infinity
  #die: () => void = () => undefined
  #bury: () => void = () => undefined
  /** What it asks for when it is dead; settles only when the test is over. */
  readonly #nothing: Promise<never>

  constructor(store: RunStore, keepsLast: () => boolean) {
    this.died = new Promise((resolve) => (this.#die = resolve))
    const buried = new StoreError('ERR_AGENT_STORE_LOCKED', 'the process is dead')
    this.#nothing = new Promise((_, reject) => (this.#bury = () => reject(buried)))
    this.#nothing.catch(() => undefined)
    const mortal = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (_, name) => {
          const value: unknown = Reflect.get(target, name, target)
          if (name === 'close') return () => Promise.resolve()
          if (name === 'objects') return mortal(value as ObjectStore)
          if (typeof value !== 'function') return value
          return (...args: readonly unknown[]): unknown => {
            this.#left -= 1
            if (this.#left > 0) return Reflect.apply(value, target, args)
            const isLast = this.#left === 0
            if (isLast && keepsLast()) {
              void Promise.resolve(Reflect.apply(value, target, args)).then(this.#die, this.#die)
            } else if (isLast) this.#die()
            return this.#nothing
          }
        },
      })
    this.store = mortal(store)
  }

  get isDead(): boolean {
    return this.#left <= 0
  }

  dieAfter(calls: number): void {
    this.#left = calls
  }

  /** Lets go of what a dead one holds, such as threads. */
  bury(): void {
    this.#bury()
  }

  live(): void {
    this.#left = Infinity
  }
}
