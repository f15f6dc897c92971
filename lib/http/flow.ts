import { ClientStateError } from './errors.js'

/**
 * Work that may have to wait: a generator that yields promises and is resumed with their results.
 * The logic of both clients is written once, as flows; each client only drives them.
 */
export type Flow<T> = Generator<PromiseLike<unknown>, T, unknown>

/** Whether `value` has a `then()` method, as promises of other libraries do too. */
export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/** Inside a flow: the value of `value`, after waiting if it is a promise. */
export function* settle<T>(value: T | PromiseLike<T>): Flow<T> {
  return isPromiseLike(value) ? ((yield value) as T) : value
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
