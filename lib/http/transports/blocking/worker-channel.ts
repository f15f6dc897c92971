import os from 'node:os'
import type { MessagePort } from 'node:worker_threads'
import type { Timeouts } from '../../config.js'
import { WorkerError } from '../../errors.js'
import { Mailbox, MAILBOX_BYTES } from './mailbox.js'
import { CONTROL, decodeError, type FromWorker, type ToWorker, WORKER } from './protocol.js'
import { REQUEST_SLOT_BYTES, RequestSlot } from './request-slot.js'
import { WorkerThread } from './worker-thread.js'

/** Mutable, so that tests can shorten them. */
export const WORKER_TIMEOUTS = {
  /** How long a new worker may take to start, if the call sets no limit. */
  startMs: 10_000,
  /** Calls with a smaller limit still allow a new worker this time: the machine may be busy. */
  leastStartMs: 1_000,
  /** How long one sleep lasts before it is checked that the worker lives. */
  checkMs: 100,
  /** How long the worker may be silent before it is sent a ping. */
  sleepMs: 1_000,
  /** How long a call whose time is up waits for a worker to say whether it has something for it. */
  lastMs: 500,
  /** How long a worker may leave a ping unanswered. */
  stuckMs: 10_000,
}

/**
 * The caller's end of the worker thread: sends messages, and sleeps until the replies arrive. The
 * worker does not keep the process running.
 *
 * 1. The caller sleeps on a counter that it has read before it looked for messages, so that no
 *    wake-up is lost.
 * 2. Messages carry the id of their exchange; those of finished exchanges are dropped.
 * 3. A ping stays pending across calls, so that short timeouts do not hide a worker that hangs.
 */
export class WorkerChannel {
  /** Loaded with the first channel: `AsyncClient` needs no threads. */
  readonly #threads = process.getBuiltinModule('node:worker_threads')
  readonly #thread: WorkerThread
  readonly #port: MessagePort
  readonly #control: Int32Array
  readonly #mailbox: Mailbox
  readonly #slot: RequestSlot
  /** Counts messages taken from the port, as {@link CONTROL.queued} counts those posted to it. */
  #taken = 0
  readonly #inboxes = new Map<number, FromWorker[]>()
  #lastId = 0
  readonly #adaptiveSpin = new AdaptiveSpin()
  /** `performance.now()` of the unanswered ping; null without one. */
  #pingedAt: number | null = null
  #pingBeat = 0

  constructor() {
    const { port1, port2 } = new this.#threads.MessageChannel()
    this.#port = port1
    this.#control = new Int32Array(new SharedArrayBuffer(4 * CONTROL.length))
    const mailbox = new SharedArrayBuffer(MAILBOX_BYTES)
    const slot = new SharedArrayBuffer(REQUEST_SLOT_BYTES)
    this.#mailbox = new Mailbox(this.#control, mailbox)
    this.#slot = new RequestSlot(this.#control, slot)
    try {
      this.#thread = new WorkerThread({ port: port2, control: this.#control, mailbox, slot })
    } catch (error) {
      port1.close()
      throw error
    }
    port1.unref()
  }

  /** Whether the worker can still reply; it may be starting. */
  get alive(): boolean {
    return this.#thread.alive
  }

  /** The id of a new exchange; messages for it are kept until {@link WorkerChannel.forget}. */
  begin(): number {
    const id = ++this.#lastId
    this.#inboxes.set(id, [])
    return id
  }

  /** Ends an exchange: later messages for it are dropped. */
  forget(id: number): void {
    this.#inboxes.delete(id)
  }

  post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    // A request in the slot must not overtake messages.
    if (message.t === 'request' && this.#slot.put(message)) return
    Atomics.add(this.#control, CONTROL.sent, 1)
    const isText = message.t === 'request' && !(message.request.body instanceof Uint8Array)
    this.#port.postMessage(isText ? JSON.stringify(message) : message, transfer)
    this.#slot.interrupt()
  }

  /**
   * Sleeps until there is a message of type `t` for `id`.
   *
   * @throws the error that the worker reports instead, or {@link WorkerError}.
   */
  receiveReply<T extends FromWorker['t']>(id: number, t: T): Extract<FromWorker, { t: T }> {
    const message = this.receive(id, null)
    if (message?.t === 'error') throw decodeError(message.error)
    if (message?.t !== t) throw new WorkerError('the worker sent an unexpected message')
    return message as Extract<FromWorker, { t: T }>
  }

  /**
   * Sleeps until there is a message for `id`.
   *
   * @param limits - End the wait for a worker that does not start.
   * @returns null when `until` (a `performance.now()`) passes first and the worker, asked then, has
   *   read nothing for it; the time that the worker takes to start does not count.
   * @throws {@link WorkerError} when the worker has died or does not answer pings.
   */
  receive(id: number, until: number | null, limits?: Timeouts): FromWorker | null {
    if (this.#thread.starting) {
      const startMs = this.#awaitStart(limits)
      if (until !== null) until += startMs
    }
    const inbox = this.#inboxes.get(id)!
    let waitedSince = 0
    let spinMs = 0
    // When the wait for the worker's last word ends; 0 before it was asked.
    let lastAt = 0
    for (;;) {
      const seen = Atomics.load(this.#control, CONTROL.posted)
      const beat = Atomics.load(this.#control, CONTROL.heartbeat)
      this.#sort()
      const message = inbox.shift()
      if (message !== undefined) {
        if (waitedSince !== 0) this.#adaptiveSpin.record(performance.now() - waitedSince)
        return message
      }
      if (!this.alive) throw this.#thread.failure
      const now = performance.now()
      this.#checkPing(now)
      if (lastAt !== 0 && (beat !== this.#pingBeat || now >= lastAt)) return null
      if (lastAt === 0 && until !== null && now >= until) {
        this.#ping(now)
        until = lastAt = now + WORKER_TIMEOUTS.lastMs
      }
      if (waitedSince === 0) {
        waitedSince = now
        spinMs = this.#adaptiveSpin.next()
        if (spinMs > 0 && this.#spin(seen, spinMs)) continue
      }
      const { checkMs, sleepMs } = WORKER_TIMEOUTS
      const left = until === null ? checkMs : Math.min(checkMs, until - now)
      if (Atomics.wait(this.#control, CONTROL.posted, seen, left) !== 'timed-out') continue
      this.#thread.probe()
      if (now - waitedSince >= sleepMs) this.#ping(now)
    }
  }

  /** Ends the worker; open exchanges fail with {@link WorkerError}. */
  terminate(): void {
    this.#thread.terminate()
    this.#port.close()
  }

  /** Sends a ping, unless one is pending. */
  #ping(now: number): void {
    if (this.#pingedAt !== null) return
    this.#pingedAt = now
    this.#pingBeat = Atomics.load(this.#control, CONTROL.heartbeat)
    this.post({ t: 'ping' })
  }

  #checkPing(now: number): void {
    if (this.#pingedAt === null) return
    if (Atomics.load(this.#control, CONTROL.heartbeat) !== this.#pingBeat) this.#pingedAt = null
    else if (now - this.#pingedAt > WORKER_TIMEOUTS.stuckMs) {
      this.terminate()
      throw new WorkerError('the worker thread behind Client hangs; it was replaced, call again')
    }
  }

  /** Polls the counter for `spinMs`; true once it differs from `seen`. */
  #spin(seen: number, spinMs: number): boolean {
    const end = performance.now() + spinMs
    do {
      for (let i = 0; i < 50; i++)
        if (Atomics.load(this.#control, CONTROL.posted) !== seen) return true
    } while (performance.now() < end)
    return false
  }

  /** Distributes arrived messages to the inboxes of their exchanges. */
  #sort(): void {
    // Checked before the port: mail is the last message of its exchange, so the port then has the
    // others.
    const mailed = this.#mailbox.full
    while (this.#taken !== Atomics.load(this.#control, CONTROL.queued)) {
      const received = this.#threads.receiveMessageOnPort(this.#port)
      if (received === undefined) break
      this.#taken = (this.#taken + 1) | 0
      const message = received.message as FromWorker
      this.#inboxes.get(message.id)?.push(message)
    }
    const mail = mailed ? this.#mailbox.take() : null
    if (mail !== null) this.#inboxes.get(mail.id)?.push(mail)
  }

  /** Waits until the worker has started, and returns for how many ms. */
  #awaitStart(limits?: Timeouts): number {
    const { checkMs, leastStartMs, startMs } = WORKER_TIMEOUTS
    const own = Math.min(limits?.connect ?? startMs, limits?.total ?? startMs, startMs)
    const limitMs = Math.max(own, leastStartMs)
    const began = performance.now()
    while (this.#thread.starting) {
      const left = limitMs - (performance.now() - began)
      if (left <= 0) {
        this.terminate()
        throw new WorkerError(
          `the worker thread behind Client did not start within ${limitMs} ms: the machine is ` +
            'too busy, or a module that NODE_OPTIONS loads blocks the thread',
        )
      }
      const sliceMs = Math.min(left, checkMs / 4)
      const result = Atomics.wait(this.#control, CONTROL.state, WORKER.starting, sliceMs)
      if (result === 'timed-out') this.#thread.probe()
    }
    return performance.now() - began
  }
}

let shared: WorkerChannel | null = null

/** The channel that every `Client` of this thread uses; a new one once its worker has died. */
export function sharedChannel(): WorkerChannel {
  if (shared === null || !shared.alive) shared = new WorkerChannel()
  return shared
}

/** Longest spin. To sleep and wake up takes longer than the response of a server nearby. */
const SPIN_MS = 0.4
/** Waits that are done one way, one after the other, before both ways are compared. */
const BLOCK = 16
/** The first waits of a block do not count: processors that were asleep are slow. */
const SETTLING = 4
/** One of so many blocks is done the other way, to see whether that has become better. */
const TRIAL_INTERVAL = 32
/** Ratio of waits that justifies a spin: it costs processor time, and luck looks like a gain. */
const MAX_RATIO = 0.8

/**
 * Decides whether a wait begins with a spin. Both ways are measured now and then, and the spin is
 * kept only where it makes waits shorter; on a busy machine, or with a distant server, it does not.
 * Each way is tried in blocks, because a single spin between sleeps gains little: it is the threads
 * that stay awake which make each other fast. With one processor there is no spin: it would only
 * delay the worker.
 */
export class AdaptiveSpin {
  readonly #allowed = os.availableParallelism() > 1
  /** How this block is done, and what is done outside trials. */
  #spins = true
  #chosen = true
  #blocks = 0
  #waits: number[] = []
  /** The median wait of the last block with a spin and without, in ms; 0 before the first. */
  #withSpin = 0
  #withoutSpin = 0
  /** Waits with a spin relative to those without; 0 before both are known. */
  #ratio = 0

  /** How long the next wait should spin, in ms; 0 for not at all. */
  next(): number {
    return this.#allowed && this.#spins ? SPIN_MS : 0
  }

  /** Records how long a wait took. */
  record(waitedMs: number): void {
    if (!this.#allowed) return
    this.#waits.push(waitedMs)
    if (this.#waits.length < BLOCK) return
    const counted = this.#waits.slice(SETTLING).sort((a, b) => a - b)
    this.#waits = []
    const median = Math.max(counted[counted.length >> 1]!, 0.001)
    if (this.#spins) this.#withSpin = median
    else this.#withoutSpin = median
    if (this.#spins !== this.#chosen || this.#ratio === 0) this.#compare()
    const trial = ++this.#blocks % TRIAL_INTERVAL === 1
    this.#spins = trial ? !this.#chosen : this.#chosen
  }

  #compare(): void {
    if (this.#withSpin === 0 || this.#withoutSpin === 0) return
    const ratio = this.#withSpin / this.#withoutSpin
    this.#ratio = this.#ratio === 0 ? ratio : (this.#ratio + Math.min(ratio, 2)) / 2
    this.#chosen = this.#ratio < MAX_RATIO
  }
}
