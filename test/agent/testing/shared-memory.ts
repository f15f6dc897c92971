import { StoreError, type RunStore } from 'runwright/agent'

/** A store's methods, all of them asynchronous. */
type Method = 'append' | 'read' | 'head' | 'list' | 'counts' | 'findByKey' | 'delete' | 'open'

/** A handle on a store that others hold as well, with a close of its own: as processes hold a database. */
export function handleOn(store: RunStore): RunStore {
  let closed = false
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') {
        return () => {
          closed = true
          return Promise.resolve()
        }
      }
      const value = Reflect.get(target, name) as unknown
      if (typeof value !== 'function') return value
      return (...words: unknown[]): unknown => {
        if (closed)
          return Promise.reject(new StoreError('ERR_AGENT_STORE', 'this handle is closed'))
        return (target[name as Method] as (...all: unknown[]) => unknown).apply(target, words)
      }
    },
  })
}
