import type { ObjectStore, RunStore } from 'runwright/agent'

/**
 * What one process has of a store. From a given call on it is dead: what it asks for is never
 * answered, so that it does nothing more. The last call may have had its effect.
 */
export class MortalProcess {
  readonly store: RunStore
  readonly died: Promise<void>
  #left = Infinity
  #die: () => void = () => undefined

  constructor(store: RunStore, keepsLast: () => boolean) {
    this.died = new Promise((resolve) => (this.#die = resolve))
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
            return new Promise(() => undefined)
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

  live(): void {
    this.#left = Infinity
  }
}
