import type { Clock, MemoryStore, RunStore } from 'runwright/agent'

const never = <T>(): Promise<T> => new Promise<T>(() => undefined)

/**
 * A store that a process loses when it dies. The append at which it dies is stored or not, at
 * random; what is stored is there for the next process.
 */
export class MortalStore {
  readonly store: RunStore
  readonly died: Promise<void>
  #die: () => void = () => undefined
  #dead = false

  /** The process is dead: what it does has no effect. */
  get isDead(): boolean {
    return this.#dead
  }

  constructor(disk: MemoryStore, dieAt: number, keepsLast: boolean) {
    this.died = new Promise((resolve) => (this.#die = resolve))
    let appends = 0
    const alive = <T>(work: () => Promise<T>): Promise<T> => (this.#dead ? never() : work())
    this.store = {
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
      read: (runId, after, limit) => alive(() => disk.read(runId, after, limit)),
      head: (runId) => alive(() => disk.head(runId)),
      list: (query) => alive(() => disk.list(query)),
      counts: () => alive(() => disk.counts()),
      findByKey: (owner, key, since) => alive(() => disk.findByKey(owner, key, since)),
      delete: (runId) => alive(() => disk.delete(runId)),
      append: (runId, records) =>
        alive(async () => {
          appends += 1
          if (appends !== dieAt) return disk.append(runId, records)
          this.#dead = true
          if (keepsLast) await disk.append(runId, records)
          this.#die()
          return never()
        }),
    }
  }
}

/** A clock whose timers end with the process that set them. */
export function mortalClock(died: Promise<void>): Clock {
  const timers = new Set<NodeJS.Timeout>()
  let dead = false
  void died.then(() => {
    dead = true
    for (const timer of timers) clearTimeout(timer)
  })
  return {
    now: () => Date.now(),
    setTimeout: (callback, ms) => {
      if (dead) return { cancel: () => undefined }
      const timer = setTimeout(() => {
        timers.delete(timer)
        callback()
      }, ms)
      timers.add(timer)
      return {
        cancel: () => {
          timers.delete(timer)
          clearTimeout(timer)
        },
      }
    },
  }
}
