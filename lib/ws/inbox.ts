import { abortListeners } from '../internal/time.js'
import type { WebSocketMessage } from './receiver.js'

/** Added to the size of each message, so that a flood of empty ones is bounded too. */
const MESSAGE_OVERHEAD_BYTES = 64

/** The callbacks of an inbox. One table serves all connections, hence the `owner` parameter. */
export interface InboxEvents<Owner> {
  /** The program took a message, waits for one or has left a loop, or there is room again. */
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

/**
 * A `next()` that waits for a message. The iterator itself stands for the first of its own, since
 * most connections are idle most of the time, and wait with exactly one.
 */
interface Waiter {
  readonly iterator: MessageIterator
  settle: ((result: Result | Promise<Result>) => void) | null
  later: Waiter | null
}

/** Messages that the program has not taken yet. */
class Queue {
  /** The oldest message last. `Array.shift()` would move all others of a long list. */
  #oldest: WebSocketMessage[] = []
  /** Those that came after all of them, in their order. */
  #newer: WebSocketMessage[] = []
  bytes = 0
  readsAhead = false
  /** How often the program made room after there was none. */
  relieved = 0
  /** Started when there is no room. */
  timer: NodeJS.Timeout | undefined

  get isEmpty(): boolean {
    return this.#oldest.length + this.#newer.length === 0
  }

  push(message: WebSocketMessage): void {
    this.#newer.push(message)
  }

  shift(): WebSocketMessage | undefined {
    if (this.#oldest.length === 0) {
      const empty = this.#oldest
      this.#oldest = this.#newer.reverse()
      this.#newer = empty
    }
    return this.#oldest.pop()
  }
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
  readonly #limits: InboxLimits
  /** Exists from the first message that had to wait. */
  #queue: Queue | null = null
  /** The oldest of those that wait. */
  #waiter: Waiter | null = null
  #lastWaiter: Waiter | null = null
  #iterators = 0
  #ended = false
  /** What to do when an iterator that listens to a signal ends. */
  #cleanUps: Map<unknown, () => void> | null = null
  /** Whether a handler is being called with the messages. */
  draining = false

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
    return this.#queue === null || this.#queue.isEmpty
  }

  get hasRoom(): boolean {
    const queue = this.#queue
    if (queue === null) return true
    const { receiveAheadBytes, maxMessageBytes } = this.#limits
    return queue.bytes < receiveAheadBytes + (queue.readsAhead ? maxMessageBytes : 0)
  }

  /** Adds a message; false when there is no room, so that reading should pause. */
  push(message: WebSocketMessage): boolean {
    const waiter = this.#waiter
    if (waiter !== null) {
      this.#waiter = waiter.later
      settle(waiter, { done: false, value: message })
      return true
    }
    const queue = (this.#queue ??= new Queue())
    queue.push(message)
    queue.bytes += weigh(message)
    if (this.hasRoom) return true
    this.#readAheadLater(queue)
    return false
  }

  /** Removes the oldest message. */
  shift(): WebSocketMessage | undefined {
    const queue = this.#queue
    const message = queue?.shift()
    if (queue === null || message === undefined) return undefined
    const limit = this.#limits.receiveAheadBytes
    const wasFull = queue.bytes >= limit
    queue.bytes -= weigh(message)
    if (wasFull && queue.bytes < limit) {
      queue.readsAhead = false
      queue.relieved++
    }
    return message
  }

  /** No message will follow: iterators take what is left, then they are done. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#queue?.timer)
    for (const cleanUp of this.#cleanUps?.values() ?? []) cleanUp()
    this.#cleanUps = null
    this.#settleAll(() => true, done)
  }

  /** Ends all iterations, and returns an inbox with what they have left. */
  handOver(): Inbox<Owner> {
    const rest = new Inbox(this.#owner, this.#events, this.#limits)
    const queue = this.#queue
    rest.#ended = this.#ended
    this.#queue = null
    this.end()
    if (queue === null) return rest
    clearTimeout(queue.timer)
    queue.timer = undefined
    rest.#queue = queue
    if (!rest.hasRoom) rest.#readAheadLater(queue)
    return rest
  }

  #readAheadLater(queue: Queue): void {
    if (queue.timer !== undefined || queue.readsAhead || this.#ended) return
    const { relieved } = queue
    queue.timer = setTimeout(() => {
      queue.timer = undefined
      if (this.hasRoom) return
      if (queue.relieved !== relieved) return this.#readAheadLater(queue)
      queue.readsAhead = true
      this.#events.changed(this.#owner)
    }, READ_AHEAD_AFTER_MS)
    queue.timer.unref()
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
    this.#events.changed(this.#owner)
  }

  /** Tells the owner that the program left its loop, unless another loop goes on. */
  abandon(): void {
    if (this.#iterators === 0 && !this.#ended) this.#events.left(this.#owner)
  }

  /** Takes the oldest message, waiting for one if need be; `done` after the end. */
  take(iterator: MessageIterator): Promise<Result> {
    const message = this.shift()
    if (message !== undefined) {
      this.#events.changed(this.#owner)
      return Promise.resolve({ done: false, value: message })
    }
    if (this.#ended) return Promise.resolve(done())
    const next = new Promise<Result>((resolve) => {
      if (iterator.settle !== null) this.#wait({ iterator, settle: resolve, later: null })
      else {
        iterator.settle = resolve
        this.#wait(iterator)
      }
    })
    this.#events.changed(this.#owner)
    return next
  }

  #wait(waiter: Waiter): void {
    if (this.#waiter === null) this.#waiter = waiter
    else this.#lastWaiter!.later = waiter
    this.#lastWaiter = waiter
  }

  #settleAll(
    picks: (waiter: Waiter) => boolean,
    result: () => Result | Promise<Result>,
  ): void {
    let waiter = this.#waiter
    this.#waiter = null
    for (; waiter !== null; ) {
      const { later } = waiter
      waiter.later = null
      if (picks(waiter)) settle(waiter, result())
      else this.#wait(waiter)
      waiter = later
    }
  }
}

function settle(waiter: Waiter, result: Result | Promise<Result>): void {
  const resolve = waiter.settle!
  waiter.settle = null
  waiter.later = null
  resolve(result)
}

/**
 * One iteration over the messages of a connection. Several take turns: each message goes to the
 * `next()` that was called first.
 */
export class MessageIterator
  implements AsyncIterableIterator<WebSocketMessage, undefined>, Waiter
{
  /** @internal */
  settle: Waiter['settle'] = null
  /** @internal */
  later: Waiter | null = null
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

  /** @internal */
  get iterator(): this {
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
