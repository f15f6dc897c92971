import { ClientStateError } from './errors.js'

/**
 * Work that may have to wait: a generator that yields promises and is resumed with their results.
 * The logic of both clients is written once, as flows; each client only drives them.
 */
export type Flow<T> = Generator<PromiseLike<unknown>, T, unknown>

/** Inside a flow: returns `value`, after waiting for it if it is a promise of any library. */
export function* settle<T>(value: T | PromiseLike<T>): Flow<T> {
  return isPromiseLike(value) ? ((yield value) as T) : value
}

function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  const then = typeof value === 'object' && value !== null && 'then' in value ? value.then : null
  return typeof then === 'function'
}

/** Runs a flow, awaiting each promise that it yields. */
export async function drive<T>(flow: Flow<T>): Promise<T> {
  let step = flow.next()
  while (step.done !== true) {
    let value: unknown
    try {
      value = await step.value
    } catch (error) {
      step = flow.throw(error)
      continue
    }
    step = flow.next(value)
  }
  return step.value
}

/**
 * Runs a flow on a thread that cannot wait.
 *
 * @throws {@link ClientStateError} when it yields a promise: a hook, transport or auth is async.
 */
export function driveSync<T>(flow: Flow<T>): T {
  let step = flow.next()
  while (step.done !== true) {
    void Promise.resolve(step.value).catch(() => {})
    step = flow.throw(
      new ClientStateError(
        'a hook, transport or auth flow returned a promise, which Client cannot wait for; make ' +
          'it synchronous or use AsyncClient',
      ),
    )
  }
  return step.value
}
