import os from 'node:os'
import { CONTROL, type ToWorker } from './protocol.js'

/** Largest request that fits, head and body together. */
export const REQUEST_SLOT_BYTES: number = 32 * 1024

/** How long the worker waits for the next request, in ms. Its other sockets wait as long. */
const WAIT_MS = 1
/** How long of that it spins: to put a thread to sleep and wake it takes about as long. */
const SPIN_MS = 0.1
/** The longest series of responses after which the worker does not wait, after waits in vain. */
const MAX_SKIPS = 63

/** Values of {@link CONTROL.slot}. */
const SLOT = { closed: 0, open: 1, full: 2 } as const

type RequestMessage = Extract<ToWorker, { t: 'request' }>

/**
 * Shared memory in which the caller leaves a small request for a worker that has just responded and
 * waits for the next call. A message to a worker in its event loop costs more than all the rest.
 *
 * 1. The worker opens the slot and waits; the caller fills it only while it is open, and the worker
 *    closes it again, so that each request has one reader.
 * 2. Waits that were in vain become rare: a program that calls now and then does not pay for them.
 */
export class RequestSlot {
  readonly #control: Int32Array
  readonly #bytes: Buffer
  readonly #maySpin = os.availableParallelism() > 1
  #spins = false
  #skips = 0
  #skipped = 0

  constructor(control: Int32Array, memory: SharedArrayBuffer) {
    this.#control = control
    this.#bytes = Buffer.from(memory)
  }

  /** Caller: leaves a request; false when the worker does not wait for one or it does not fit. */
  put(message: RequestMessage): boolean {
    const { body } = message.request
    // A request must not overtake messages.
    if (Atomics.load(this.#control, CONTROL.slot) !== SLOT.open || this.#unread) return false
    const bytes = body instanceof Uint8Array ? body : null
    if (bytes?.byteLength === 0) return false
    const text = JSON.stringify(
      bytes === null ? message : { ...message, request: { ...message.request, body: null } },
    )
    // A character takes at most three bytes in UTF-8.
    if (3 * text.length + (bytes?.byteLength ?? 0) > this.#bytes.length) return false
    const textLength = this.#bytes.write(text)
    if (bytes !== null) this.#bytes.set(bytes, textLength)
    this.#control[CONTROL.slotText] = textLength
    this.#control[CONTROL.slotLength] = textLength + (bytes?.byteLength ?? 0)
    const was = Atomics.compareExchange(this.#control, CONTROL.slot, SLOT.open, SLOT.full)
    if (was !== SLOT.open) return false
    Atomics.notify(this.#control, CONTROL.slot)
    return true
  }

  /** Caller: ends the wait of the worker, which has a message to read. */
  interrupt(): void {
    const was = Atomics.compareExchange(this.#control, CONTROL.slot, SLOT.open, SLOT.closed)
    if (was === SLOT.open) Atomics.notify(this.#control, CONTROL.slot)
  }

  /** Worker: offers the slot, before it wakes the caller, who may be quick. */
  open(): void {
    if (this.#skipped < this.#skips) {
      this.#skipped++
      return
    }
    this.#skipped = 0
    Atomics.store(this.#control, CONTROL.slot, SLOT.open)
    // A thread that posts a message sees the open slot, or its message is seen here.
    if (this.#unread) this.interrupt()
  }

  /** Worker: takes the request from a slot that was opened, and waits a moment for it if `idle`. */
  take(idle: boolean): RequestMessage | null {
    const state = Atomics.load(this.#control, CONTROL.slot)
    if (state === SLOT.closed) return null
    if (state === SLOT.open && idle) this.#wait()
    const was = Atomics.compareExchange(this.#control, CONTROL.slot, SLOT.open, SLOT.closed)
    if (was !== SLOT.full) return null
    this.#skips = 0
    const message = this.#read()
    Atomics.store(this.#control, CONTROL.slot, SLOT.closed)
    return message
  }

  #wait(): void {
    const began = performance.now()
    if (!this.#spins || !this.#spin(began + SPIN_MS)) {
      Atomics.wait(this.#control, CONTROL.slot, SLOT.open, WAIT_MS)
    }
    const inVain = Atomics.load(this.#control, CONTROL.slot) === SLOT.open
    if (inVain) this.#skips = Math.min(2 * this.#skips + 1, MAX_SKIPS)
    this.#spins = this.#maySpin && !inVain && performance.now() - began < SPIN_MS
  }

  /** Whether the port has messages that the worker has not taken. */
  get #unread(): boolean {
    const { sent, handled } = CONTROL
    return Atomics.load(this.#control, sent) !== Atomics.load(this.#control, handled)
  }

  #spin(until: number): boolean {
    do {
      for (let i = 0; i < 50; i++)
        if (Atomics.load(this.#control, CONTROL.slot) !== SLOT.open) return true
    } while (performance.now() < until)
    return false
  }

  #read(): RequestMessage {
    const textLength = this.#control[CONTROL.slotText]!
    const message = JSON.parse(this.#bytes.toString('utf8', 0, textLength)) as RequestMessage
    const shared = this.#bytes.subarray(textLength, this.#control[CONTROL.slotLength])
    if (shared.byteLength === 0) return message
    return { ...message, request: { ...message.request, body: new Uint8Array(shared) } }
  }
}
