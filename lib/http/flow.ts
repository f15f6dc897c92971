import { ClientStateError } from './errors.js'

/**
 * Work that may have to wait: a generator that yields what it waits for and is resumed with the
 * outcome. The whole logic of the clients is written as flows; each client only drives them.
 */
export type Flow<T> = Generator<PromiseLike<unknown>, T, unknown>

/** Whether `value` has to be waited for. */
export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/** Inside a flow: `value` itself, waited for where it is a promise. */
export function* settle<T>(value: T | PromiseLike<T>): Flow<T> {
  return isPromiseLike(value) ? ((yield value) as T) : value
}

/** Runs a flow, awaiting what it waits for. */
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
 * Runs a flow that must not wait.
 *
 * @throws {@link ClientStateError} when it does: a hook, transport or authentication is asynchronous.
 */
export function driveSync<T>(flow: Flow<T>): T {
  let step = flow.next()
  while (step.done !== true) {
    void Promise.resolve(step.value).catch(() => {})
    step = flow.throw(
      new ClientStateError(
        'a hook, transport or auth flow returned a promise, which Client cannot wait for; make it ' +
          'synchronous or use AsyncClient',
      ),
    )
  }
  return step.value
}
