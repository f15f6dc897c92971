import type { MessagePort, Worker } from 'node:worker_threads'
import { WorkerError } from '../../errors.js'
import { CONTROL, WORKER, type WorkerStart } from './protocol.js'
import { workerCode } from './worker-code.js'

/** Room for the reason of a worker's end. */
const REPORT_BYTES = 2048

/**
 * Runs before the code of the worker: leaves the reason of its end in shared memory, where a thread
 * that sleeps can find it. It cannot receive the events of the worker.
 */
const PROLOGUE = `{
  const { control, report } = process.getBuiltinModule('node:worker_threads').workerData
  const end = (reason) => {
    if (Atomics.load(control, ${CONTROL.state}) === ${WORKER.dead}) return
    control[${CONTROL.reported}] = Buffer.from(report).write(reason)
    Atomics.store(control, ${CONTROL.state}, ${WORKER.dead})
    Atomics.notify(control, ${CONTROL.state})
    Atomics.notify(control, ${CONTROL.posted})
  }
  process.on('uncaughtException', (error) => {
    end(String(error))
    process.exit(1)
  })
  process.on('exit', (code) => end('process.exit(' + code + ') was called in it'))
}
`

/** The thread behind `Client`, and how it ended. It does not keep the process running. */
export class WorkerThread {
  readonly #threads = process.getBuiltinModule('node:worker_threads')
  readonly #worker: Worker
  readonly #control: Int32Array
  readonly #report = new SharedArrayBuffer(REPORT_BYTES)
  /** One end of a channel whose other end closes when the thread ends, however that happens. */
  #lifeline: MessagePort
  readonly #probe = new this.#threads.MessageChannel()

  /** @throws {@link WorkerError} when the thread cannot be started, or this one may not wait. */
  constructor(data: Omit<WorkerStart, 'lifeline' | 'report'>) {
    this.#control = data.control
    checkWaiting(data.control)
    const { port1, port2 } = new this.#threads.MessageChannel()
    this.#lifeline = port1
    const workerData: WorkerStart = { ...data, lifeline: port2, report: this.#report }
    try {
      this.#worker = new this.#threads.Worker(PROLOGUE + workerCode(), {
        eval: true,
        workerData,
        transferList: [data.port, port2],
        execArgv: [],
        stdin: false,
      })
    } catch (cause) {
      throw cannotStart(cause as NodeJS.ErrnoException)
    }
    this.#worker.unref()
    this.#worker.on('error', () => this.markDead())
    this.#worker.on('exit', () => this.markDead())
  }

  /** Whether it is known to be alive or starting. See {@link WorkerThread.probe}. */
  get alive(): boolean {
    return Atomics.load(this.#control, CONTROL.state) !== WORKER.dead
  }

  get starting(): boolean {
    return Atomics.load(this.#control, CONTROL.state) === WORKER.starting
  }

  /**
   * Notices a thread that could not report its end, for example because it had no memory left. Its
   * end of the lifeline closes, and a closed port cannot be transferred.
   */
  probe(): void {
    if (!this.alive) return
    // Takes in that the other end has closed.
    this.#threads.receiveMessageOnPort(this.#lifeline)
    try {
      this.#probe.port1.postMessage(this.#lifeline, [this.#lifeline])
    } catch {
      this.markDead()
      return
    }
    const received = this.#threads.receiveMessageOnPort(this.#probe.port2)
    this.#lifeline = (received as { message: MessagePort }).message
  }

  markDead(): void {
    Atomics.store(this.#control, CONTROL.state, WORKER.dead)
  }

  terminate(): void {
    this.markDead()
    void this.#worker.terminate()
  }

  /** Why the thread is dead. */
  get failure(): WorkerError {
    const length = this.#control[CONTROL.reported]!
    const reason =
      length > 0
        ? Buffer.from(this.#report).toString('utf8', 0, length)
        : 'it was terminated, ran out of memory, or was ended by a module that NODE_OPTIONS loads'
    return new WorkerError(
      `the worker thread behind Client died (${reason}); call again to start a new one`,
      { cause: new Error(reason) },
    )
  }
}

/** Some threads may not block, such as those that draw windows. */
function checkWaiting(control: Int32Array): void {
  try {
    Atomics.wait(control, CONTROL.state, WORKER.starting, 0)
  } catch (cause) {
    throw new WorkerError(
      'Client needs a thread that may block, and this one may not: use AsyncClient here, or ' +
        'Client inside a worker',
      { cause },
    )
  }
}

function cannotStart(cause: NodeJS.ErrnoException): WorkerError {
  const denied = cause.code === 'ERR_ACCESS_DENIED'
  return new WorkerError(
    `the worker thread behind Client cannot be started (${cause.message})` +
      (denied ? ': run node with --allow-worker, or use AsyncClient, which needs no thread' : ''),
    { cause },
  )
}
