import { StoreError, type RunStore } from 'runwright/agent'

type Method = 'append' | 'read' | 'head' | 'list' | 'counts' | 'findByKey' | 'delete' | 'open'

/** A handle on a shared store with its own `close()`, like a connection to a database. */
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
      return async (...args: unknown[]): Promise<unknown> => {
        if (closed) throw new StoreError('ERR_AGENT_STORE', 'this handle is closed')
        return await (target[name as Method] as (...all: unknown[]) => unknown).apply(target, args)
      }
    },
  })
}
