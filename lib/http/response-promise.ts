import type { AsyncResponse } from './async-response.js'

/**
 * What `AsyncClient.request()` and its verbs return: the promise of the response, with short ways
 * to its content. `await client.get(url).json()` is `(await client.get(url)).json()`: the status
 * is looked at only with `raiseForStatus`, and no other header is sent, since the request is on its
 * way by then.
 *
 * It awaits as a plain promise does, and `then()`, `catch()` and `finally()` return plain promises.
 */
export class ResponsePromise extends Promise<AsyncResponse> {
  /**
   * The content parsed as JSON; see `AsyncResponse.json()`.
   *
   * @throws {@link InvalidJsonError}, a SyntaxError, when it is not JSON, as when it is empty.
   */
  json<T = unknown>(): Promise<T> {
    return this.then((response) => response.json<T>())
  }

  /** The content as text; see `AsyncResponse.text`. */
  text(): Promise<string> {
    return this.then((response) => response.text)
  }

  /** The decoded content; see `AsyncResponse.content`. */
  bytes(): Promise<Uint8Array> {
    return this.then((response) => response.content)
  }

  static {
    // `await` and `then()` treat an instance of another constructor as a foreign promise.
    Object.defineProperty(ResponsePromise.prototype, 'constructor', { value: Promise })
  }
}

/** Adds the short ways to `promise` itself, which costs less than a promise around it. @internal */
export function withShortcuts(promise: Promise<AsyncResponse>): ResponsePromise {
  return Object.setPrototypeOf(promise, ResponsePromise.prototype) as ResponsePromise
}
