import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads'
import { WorkerError } from '../../errors.js'
import { AdaptiveSpin } from './adaptive-spin.js'
import { Mailbox, MAILBOX_BYTES } from './mailbox.js'
import { CONTROL, WORKER, type FromWorker, type ToWorker, type WorkerStart } from './protocol.js'

/** How patient the caller is with its worker, in ms; tests are less so. */
export const WORKER_TIMEOUTS: { startMs: number; sleepMs: number; stuckMs: number } = {
  /** How long a new worker may take to start. */
  startMs: 30_000,
  /** How long one sleep lasts before the worker is asked whether it lives. */
  sleepMs: 1_000,
  /** How long a worker may leave that question unanswered. */
  stuckMs: 10_000,
}

/**
 * The worker of this thread, started when first needed, shared by every `Client`, replaced when it
 * dies or hangs, and no reason for the process to stay alive.
 *
 * 1. The caller sleeps on a counter that it has read before it looked for messages, so that no
 *    wake-up is lost.
 * 2. Messages carry the id of their exchange; those of exchanges that are over are dropped.
 * 3. A ping stays open over calls, so that short time limits do not hide a worker that hangs.
 */
export class WorkerChannel {
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #control: Int32Array
  readonly #mailbox: Mailbox
  /** Messages taken from the port. */
  #taken = 0
  readonly #inbox = new Map<number, FromWorker[]>()
  #lastId = 0
  readonly #adaptiveSpin = new AdaptiveSpin()
  #state: 'alive' | 'dead' = 'alive'
  /** `performance.now()` of the ping that was not answered yet. */
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

  /** Whether the worker may still answer. */
  get alive(): boolean {
    if (Atomics.load(this.#control, CONTROL.state) === WORKER.dead) this.#die()
    return this.#state === 'alive'
  }

  /** A number for a new exchange; messages for it are kept until {@link WorkerChannel.forget}. */
  begin(): number {
    const id = ++this.#lastId
    this.#inbox.set(id, [])
    return id
  }

  /** The exchange is over: later messages for it are dropped. */
  forget(id: number): void {
    this.#inbox.delete(id)
  }

  post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    const isText = message.t === 'request' && !(message.request.body instanceof Uint8Array)
    this.#port.postMessage(isText ? JSON.stringify(message) : message, transfer)
  }

  /**
   * Sleeps until a message for `id` is there.
   *
   * @returns null when `until` (a `performance.now()`) passes first; the time that the worker takes
   *   to start does not count.
   * @throws {@link WorkerError} when the worker died or does not answer pings.
   */
  receive(id: number, until: number | null): FromWorker | null {
    const startMs = this.#awaitStart()
    if (until !== null) until += startMs
    const inbox = this.#inbox.get(id)!
    let waitedSince = 0
    let spinMs = 0
    for (;;) {
      const seen = Atomics.load(this.#control, CONTROL.posted)
      this.#sort()
      const message = inbox.shift()
      if (message !== undefined) {
        if (waitedSince !== 0) this.#adaptiveSpin.note(spinMs, performance.now() - waitedSince)
        return message
      }
      if (!this.alive) throw deadError()
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
      const left = until === null ? WORKER_TIMEOUTS.sleepMs : Math.min(WORKER_TIMEOUTS.sleepMs, until - now)
      const woken = Atomics.wait(this.#control, CONTROL.posted, seen, left)
      if (woken === 'timed-out') this.#ping(performance.now())
    }
  }

  /** Ends the worker; whoever still has an exchange with it gets {@link WorkerError}. */
  terminate(): void {
    this.#die()
    void this.#worker.terminate()
  }

  /** Asks the worker whether it lives, unless it was asked and has not answered. */
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
      throw new WorkerError('the worker thread behind Client hangs; it was replaced, try again')
    }
  }

  /** Looks at the counter for `spinMs`; true when it has moved on from `seen`. */
  #spin(seen: number, spinMs: number): boolean {
    const end = performance.now() + spinMs
    do {
      for (let i = 0; i < 50; i++)
        if (Atomics.load(this.#control, CONTROL.posted) !== seen) return true
    } while (performance.now() < end)
    return false
  }

  /** Puts what has come into the inboxes. */
  #sort(): void {
    // Looked at first: the mail is the last of its exchange, and the rest of it is in the port by then.
    const mailed = this.#mailbox.full
    while (this.#taken !== Atomics.load(this.#control, CONTROL.queued)) {
      const received = receiveMessageOnPort(this.#port) as { message: FromWorker } | undefined
      if (received === undefined) break
      this.#taken = (this.#taken + 1) | 0
      this.#inbox.get(received.message.id)?.push(received.message)
    }
    const mail = mailed ? this.#mailbox.take() : null
    if (mail !== null) this.#inbox.get(mail.id)?.push(mail)
  }

  /** How many ms were waited. A worker that starts finds what was posted to it meanwhile. */
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

let host: WorkerChannel | null = null

/** The worker of this thread; a new one when the last has died. */
export function sharedChannel(): WorkerChannel {
  if (host === null || !host.alive) host = new WorkerChannel()
  return host
}

function deadError(): WorkerError {
  return new WorkerError('the worker thread behind Client has died; the next call starts a new one')
}

/**
 * Starts the worker from the built file, or, when running from TypeScript, through the loader that
 * this thread runs under, which a worker does not inherit.
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
