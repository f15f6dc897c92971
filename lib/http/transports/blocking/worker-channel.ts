import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads'
import { WorkerError } from '../../errors.js'
import { AdaptiveSpin } from './adaptive-spin.js'
import { Mailbox, MAILBOX_BYTES } from './mailbox.js'
import {
  CONTROL,
  decodeError,
  WORKER,
  type FromWorker,
  type ToWorker,
  type WorkerStart,
} from './protocol.js'

/** Mutable, so that tests can shorten them. */
export const WORKER_TIMEOUTS: { startMs: number; sleepMs: number; stuckMs: number } = {
  /** How long a new worker may take to start. */
  startMs: 30_000,
  /** How long one sleep lasts before the worker is sent a ping. */
  sleepMs: 1_000,
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
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #control: Int32Array
  readonly #mailbox: Mailbox
  /** Counts messages taken from the port, as {@link CONTROL.queued} counts those posted to it. */
  #taken = 0
  readonly #inboxes = new Map<number, FromWorker[]>()
  #lastId = 0
  readonly #adaptiveSpin = new AdaptiveSpin()
  #state: 'alive' | 'dead' = 'alive'
  /** `performance.now()` of the unanswered ping; null without one. */
  #pingedAt: number | null = null
  #pingBeat = 0

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    this.#control = new Int32Array(new SharedArrayBuffer(4 * CONTROL.length))
    const mailbox = new SharedArrayBuffer(MAILBOX_BYTES)
    this.#mailbox = new Mailbox(this.#control, mailbox)
    this.#worker = startWorker({ port: port2, control: this.#control, mailbox })
    this.#worker.unref()
    this.#worker.on('error', () => this.#die())
    this.#worker.on('exit', () => this.#die())
    port1.unref()
  }

  /** Whether the worker can still reply; it may be starting. */
  get alive(): boolean {
    if (Atomics.load(this.#control, CONTROL.state) === WORKER.dead) this.#die()
    return this.#state === 'alive'
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
    const isText = message.t === 'request' && !(message.request.body instanceof Uint8Array)
    this.#port.postMessage(isText ? JSON.stringify(message) : message, transfer)
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
   * @returns null when `until` (a `performance.now()`) passes first; the time that the worker takes
   *   to start does not count.
   * @throws {@link WorkerError} when the worker has died or does not answer pings.
   */
  receive(id: number, until: number | null): FromWorker | null {
    const startMs = this.#awaitStart()
    if (until !== null) until += startMs
    const inbox = this.#inboxes.get(id)!
    let waitedSince = 0
    let spinMs = 0
    for (;;) {
      const seen = Atomics.load(this.#control, CONTROL.posted)
      this.#sort()
      const message = inbox.shift()
      if (message !== undefined) {
        if (waitedSince !== 0) this.#adaptiveSpin.record(spinMs, performance.now() - waitedSince)
        return message
      }
      if (!this.alive) {
        throw new WorkerError('the worker thread behind Client died; call again to start a new one')
      }
      const now = performance.now()
      this.#checkPing(now)
      if (until !== null && now >= until) {
        this.#ping(now)
        return null
      }
      if (waitedSince === 0) {
        waitedSince = now
        spinMs = this.#adaptiveSpin.next()
        if (spinMs > 0 && this.#spin(seen, spinMs)) continue
      }
      const { sleepMs } = WORKER_TIMEOUTS
      const left = until === null ? sleepMs : Math.min(sleepMs, until - now)
      const result = Atomics.wait(this.#control, CONTROL.posted, seen, left)
      if (result === 'timed-out') this.#ping(performance.now())
    }
  }

  /** Ends the worker; open exchanges fail with {@link WorkerError}. */
  terminate(): void {
    this.#die()
    void this.#worker.terminate()
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
      const received = receiveMessageOnPort(this.#port) as { message: FromWorker } | undefined
      if (received === undefined) break
      this.#taken = (this.#taken + 1) | 0
      this.#inboxes.get(received.message.id)?.push(received.message)
    }
    const mail = mailed ? this.#mailbox.take() : null
    if (mail !== null) this.#inboxes.get(mail.id)?.push(mail)
  }

  /** Waits until the worker has started, and returns for how many ms. */
  #awaitStart(): number {
    if (Atomics.load(this.#control, CONTROL.state) !== WORKER.starting) return 0
    const began = performance.now()
    while (Atomics.load(this.#control, CONTROL.state) === WORKER.starting) {
      if (performance.now() - began > WORKER_TIMEOUTS.startMs) {
        this.terminate()
        throw new WorkerError(
          `the worker thread behind Client did not start within ${WORKER_TIMEOUTS.startMs} ms`,
        )
      }
      Atomics.wait(this.#control, CONTROL.state, WORKER.starting, WORKER_TIMEOUTS.sleepMs)
    }
    return performance.now() - began
  }

  #die(): void {
    if (this.#state === 'dead') return
    this.#state = 'dead'
    Atomics.store(this.#control, CONTROL.state, WORKER.dead)
    this.#port.close()
  }
}

let shared: WorkerChannel | null = null

/** The channel that every `Client` of this thread uses; a new one once its worker has died. */
export function sharedChannel(): WorkerChannel {
  if (shared === null || !shared.alive) shared = new WorkerChannel()
  return shared
}

/**
 * Starts the worker from the built file or, when running from TypeScript, from source: a worker
 * does not inherit the loader of this thread, so it registers its own.
 */
function startWorker(data: WorkerStart): Worker {
  const options = { workerData: data, transferList: [data.port], execArgv: [], stdin: false }
  if (!import.meta.url.endsWith('.ts')) {
    return new Worker(new URL('./worker.js', import.meta.url), options)
  }
  const entry = new URL('./worker.ts', import.meta.url).href
  const loader = import.meta.resolve('tsx/esm/api')
  const code = `import(${JSON.stringify(loader)}).then((tsx) => {
    tsx.register()
    return import(${JSON.stringify(entry)})
  })`
  return new Worker(code, { ...options, eval: true })
}
