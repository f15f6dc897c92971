import { abortListeners } from '../internal/abort.js'
import type { WebSocketMessage } from './receiver.js'

/** Added to the size of each message, so that a flood of empty ones is bounded too. */
const MESSAGE_OVERHEAD_BYTES = 64

/** The callbacks of an inbox. One table serves all connections, hence the `owner` parameter. */
export interface InboxEvents<Owner> {
  /** The program took a message or waits for one, or there is room again. */
  changed(owner: Owner): void
  /** The program left the last loop over the messages. */
  left(owner: Owner): void
}

/** The settings of an inbox; see `WebSocketConnectionConfig`. */
export interface InboxLimits {
  readonly receiveAheadBytes: number
  readonly maxMessageBytes: number
}

/** How long there may be no room before more is read all the same. */
const READ_AHEAD_AFTER_MS = 1_000

/** A `next()` that waits for a message. */
interface Waiter {
  readonly iterator: unknown
  readonly settle: (result: Result | Promise<Result>) => void
  next: Waiter | null
}

type Result = IteratorResult<WebSocketMessage, undefined>

const done = (): Result => ({ done: true, value: undefined })

/**
 * Received messages that the program has not taken yet, oldest first, and who waits for more.
 *
 * Beyond `receiveAheadBytes` there is no room, so that a busy program slows its peer down. But one
 * that takes nothing for a second may never do so, and the peer's Close or Pong may be behind: then
 * as many bytes more as one message may have are read. So a peer that is gone is noticed, and one
 * that is there is not given up. Beyond both limits nothing is read, and silence means nothing.
 */
export class Inbox<Owner = unknown> {
  readonly #owner: Owner
  readonly #events: InboxEvents<Owner>
  #messages: WebSocketMessage[] | null = null
  #bytes = 0
  readonly #limits: InboxLimits
  #readsAhead = false
  /** The oldest of those that wait. */
  #waiter: Waiter | null = null
  #lastWaiter: Waiter | null = null
  #iterators = 0
  #ended = false
  /** What to do when an iterator that listens to a signal ends. */
  #cleanUps: Map<unknown, () => void> | null = null
  /** Whether a handler is being called with the messages. */
  draining = false
  /** How often the program made room after there was none. */
  #relieved = 0
  /** Started when there is no room. */
  #timer: NodeJS.Timeout | undefined

  constructor(owner: Owner, events: InboxEvents<Owner>, limits: InboxLimits) {
    this.#owner = owner
    this.#events = events
    this.#limits = limits
  }

  /** Whether a `next()` is waiting for a message. */
  get awaited(): boolean {
    return this.#waiter !== null
  }

  /** Whether there are iterations that the program has not ended. */
  get iterated(): boolean {
    return this.#iterators > 0
  }

  get empty(): boolean {
    return this.#messages === null || this.#messages.length === 0
  }

  get hasRoom(): boolean {
    const { receiveAheadBytes, maxMessageBytes } = this.#limits
    return this.#bytes < receiveAheadBytes + (this.#readsAhead ? maxMessageBytes : 0)
  }

  /** Adds a message; false when there is no room, so that reading should pause. */
  push(message: WebSocketMessage): boolean {
    const waiter = this.#waiter
    if (waiter !== null) {
      this.#waiter = waiter.next
      waiter.settle({ done: false, value: message })
      return true
    }
    this.#messages ??= []
    this.#messages.push(message)
    this.#bytes += weigh(message)
    if (this.hasRoom) return true
    this.#readAheadLater()
    return false
  }

  /** Removes the oldest message. */
  shift(): WebSocketMessage | undefined {
    const message = this.#messages?.shift()
    if (message === undefined) return undefined
    const limit = this.#limits.receiveAheadBytes
    const wasFull = this.#bytes >= limit
    this.#bytes -= weigh(message)
    if (wasFull && this.#bytes < limit) {
      this.#readsAhead = false
      this.#relieved++
    }
    return message
  }

  /** No message will follow: iterators take what is left, then they are done. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    for (const cleanUp of this.#cleanUps?.values() ?? []) cleanUp()
    this.#cleanUps = null
    this.#settleAll(() => true, done)
  }

  /** Ends all iterations, and returns an inbox with what they have left. */
  handOver(): Inbox<Owner> {
    const rest = new Inbox(this.#owner, this.#events, this.#limits)
    rest.#messages = this.#messages
    rest.#bytes = this.#bytes
    rest.#ended = this.#ended
    rest.#readsAhead = this.#readsAhead
    this.#messages = null
    this.end()
    if (!rest.hasRoom) rest.#readAheadLater()
    return rest
  }

  #readAheadLater(): void {
    if (this.#timer !== undefined || this.#readsAhead || this.#ended) return
    const relieved = this.#relieved
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.hasRoom) return
      if (this.#relieved !== relieved) return this.#readAheadLater()
      this.#readsAhead = true
      this.#events.changed(this.#owner)
    }, READ_AHEAD_AFTER_MS)
    this.#timer.unref()
  }

  // For iterators

  /** `cleanUp` is called when the iterator or the inbox ends. */
  enter(iterator: unknown, cleanUp: (() => void) | null): void {
    this.#iterators++
    if (cleanUp === null) return
    this.#cleanUps ??= new Map()
    this.#cleanUps.set(iterator, cleanUp)
  }

  /** Ends the iteration of `iterator`; its calls that wait get `result`. */
  leave(iterator: unknown, result: () => Result | Promise<Result>): void {
    this.#iterators--
    this.#cleanUps?.get(iterator)?.()
    this.#cleanUps?.delete(iterator)
    this.#settleAll((waiter) => waiter.iterator === iterator, result)
  }

  /** Tells the owner that the program left its loop, unless another loop goes on. */
  abandon(): void {
    if (this.#iterators === 0 && !this.#ended) this.#events.left(this.#owner)
  }

  /** Takes the oldest message, waiting for one if need be; `done` after the end. */
  take(iterator: unknown): Promise<Result> {
    const message = this.shift()
    if (message !== undefined) {
      this.#events.changed(this.#owner)
      return Promise.resolve({ done: false, value: message })
    }
    if (this.#ended) return Promise.resolve(done())
    const next = new Promise<Result>((settle) => this.#wait({ iterator, settle, next: null }))
    this.#events.changed(this.#owner)
    return next
  }

  #wait(waiter: Waiter): void {
    if (this.#waiter === null) this.#waiter = waiter
    else this.#lastWaiter!.next = waiter
    this.#lastWaiter = waiter
  }

  #settleAll(
    picks: (waiter: Waiter) => boolean,
    result: () => Result | Promise<Result>,
  ): void {
    let waiter = this.#waiter
    this.#waiter = null
    for (; waiter !== null; ) {
      const { next } = waiter
      waiter.next = null
      if (picks(waiter)) waiter.settle(result())
      else this.#wait(waiter)
      waiter = next
    }
  }
}

/**
 * One iteration over the messages of a connection. Several take turns: each message goes to the
 * `next()` that was called first.
 */
export class MessageIterator implements AsyncIterableIterator<WebSocketMessage, undefined> {
  readonly #inbox: Inbox
  readonly #signal: AbortSignal | undefined
  #state: 'active' | 'aborted' | 'done' = 'active'

  constructor(inbox: Inbox, signal: AbortSignal | undefined) {
    this.#inbox = inbox
    this.#signal = signal
    inbox.enter(this, signal === undefined ? null : this.#listen(signal))
    if (signal?.aborted === true) this.#end('aborted', done)
  }

  /** Ends this iteration when the signal aborts; returns a function that stops listening. */
  #listen(signal: AbortSignal): () => void {
    // One signal may serve many connections, so they share its event listener.
    const aborts = abortListeners(signal)
    const abort = (reason: unknown): void => {
      this.#end('aborted', () => Promise.reject(reason as Error))
    }
    aborts.add(abort)
    return () => void aborts.delete(abort)
  }

  next(): Promise<Result> {
    const signal = this.#signal
    if (signal?.aborted === true && this.#state !== 'done') {
      return Promise.reject(signal.reason as Error)
    }
    return this.#state === 'active' ? this.#inbox.take(this) : Promise.resolve(done())
  }

  return(): Promise<Result> {
    if (this.#state === 'active') {
      this.#end('done', done)
      this.#inbox.abandon()
    }
    this.#state = 'done'
    return Promise.resolve(done())
  }

  throw(reason: unknown): Promise<Result> {
    void this.return()
    return Promise.reject(reason as Error)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #end(state: 'aborted' | 'done', result: () => Result | Promise<Result>): void {
    if (this.#state !== 'active') return
    this.#state = state
    this.#inbox.leave(this, result)
  }
}

function weigh(message: WebSocketMessage): number {
  return message.length + MESSAGE_OVERHEAD_BYTES
}
