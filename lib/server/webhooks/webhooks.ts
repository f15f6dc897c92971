/**
 * Sends events to other programs, as signed requests in the format of Standard Webhooks.
 *
 * 1. Each wanted event is delivered at least once, in the order of its run, always with the same
 *    id, by which a receiver can drop repetitions.
 * 2. A failed delivery is repeated with growing delays for three days. It delays later events of
 *    the same run only.
 * 3. The progress of an endpoint survives the process: see {@link WebhookCursor}.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import {
  UnknownRunError,
  type AgentEvent,
  type EventKind,
  type ObservedAppend,
  type RunEngine,
} from '../../agent/index.js'
import { backoffDelay } from '../../internal/backoff.js'
import { systemClock, type Clock } from '../../internal/clock.js'
import { sleep } from '../../internal/sleep.js'
import { EVENT_KINDS } from '../describe/schemas.js'
import { WebhookCursor } from './cursor.js'
import { deliver, type ResolveName, type TargetRules } from './delivery.js'
import { parseSecret, signatureHeaders } from './signature.js'

/** The part of an engine that deliveries read. */
type WebhookEngine = Pick<RunEngine, 'events' | 'list' | 'observe'>

/** A receiver of events. Its progress is stored under its `url`, so a new `url` starts afresh. */
export interface WebhookEndpoint {
  /** `https:`, or with `allowPrivate` also `http:`. */
  readonly url: string
  /** `whsec_` and base64 of 24 to 64 bytes; several during a key rotation. */
  readonly secret: string | readonly string[]
  /** Kinds of events to deliver. @defaultValue run_end and human_check_required */
  readonly kinds?: readonly EventKind[] | undefined
  /** Allow addresses of this machine and of private networks. @defaultValue false */
  readonly allowPrivate?: boolean | undefined
}

/** The option `webhooks` of `createRunService()`. */
export interface WebhookOptions {
  /** Folder for the progress of each endpoint. It must not lie inside a root. */
  readonly directory: string
  /** Each gets all wanted events, independently of the others. */
  readonly endpoints: readonly WebhookEndpoint[]
  /** Milliseconds before the first retry; doubles up to an hour. @defaultValue 1000 */
  readonly retryMs?: number | undefined
  /** Called after each failed attempt. @defaultValue a warning for the first and the last one */
  readonly onFailure?: ((failure: WebhookFailure) => void) | undefined
}

/** A failed attempt to deliver an event. */
export interface WebhookFailure {
  /** Without the query, which may contain a key. */
  readonly url: string
  readonly run_id: string
  readonly seq: number
  readonly attempts: number
  readonly problem: string
  /** True when the event will not be sent again. */
  readonly final: boolean
}

/** Seams for tests. */
export interface WebhookSeams {
  readonly clock?: Clock | undefined
  readonly resolve?: ResolveName | undefined
}

const DEFAULT_KINDS: readonly EventKind[] = ['run_end', 'human_check_required']
const DEFAULT_RETRY_MS = 1_000
const MAX_RETRY_MS = 3_600_000
/** Time after which an event is given up, in milliseconds. */
const GIVE_UP_MS = 3 * 24 * 3_600_000
/** Runs per endpoint whose events are delivered concurrently. */
const CONCURRENT = 8
/** Events read from the store at a time. */
const PAGE = 256
/** Characters of a delivery; the payload of a larger event is left out. */
const MAX_BODY = 262_144

export class Webhooks {
  readonly #endpoints: readonly Endpoint[]
  readonly #unobserve: () => void

  private constructor(engine: WebhookEngine, endpoints: readonly Endpoint[]) {
    this.#endpoints = endpoints
    this.#unobserve = engine.observe((append) => {
      for (const endpoint of endpoints) endpoint.observe(append)
    })
  }

  /**
   * Opens the cursors and resumes unfinished deliveries.
   *
   * @throws TypeError for an invalid option; Error when the folder cannot be used.
   */
  static async open(
    engine: WebhookEngine,
    options: WebhookOptions,
    seams: WebhookSeams = {},
  ): Promise<Webhooks> {
    const endpoints = await Promise.all(
      options.endpoints.map((endpoint) => Endpoint.open(engine, endpoint, options, seams)),
    )
    const webhooks = new Webhooks(engine, endpoints)
    await Promise.all(endpoints.map((endpoint) => endpoint.resume()))
    return webhooks
  }

  /** Aborts deliveries in progress; they are repeated at the next start. */
  async close(): Promise<void> {
    this.#unobserve()
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()))
  }
}

/** Deliveries to one receiver: several runs at once, the events of each in order. */
class Endpoint {
  readonly #engine: WebhookEngine
  readonly #cursor: WebhookCursor
  readonly #url: URL
  readonly #secrets: readonly Buffer[]
  readonly #kinds: ReadonlySet<EventKind>
  readonly #retryMs: number
  readonly #onFailure: (failure: WebhookFailure) => void
  readonly #clock: Clock
  readonly #rules: TargetRules
  readonly #stop = new AbortController()
  /** Runs with events to deliver, in order of arrival. */
  readonly #waiting = new Set<string>()
  readonly #working = new Map<string, Promise<void>>()

  private constructor(
    engine: WebhookEngine,
    endpoint: WebhookEndpoint,
    { retryMs = DEFAULT_RETRY_MS, onFailure }: WebhookOptions,
    { clock = systemClock, resolve }: WebhookSeams,
    cursor: WebhookCursor,
  ) {
    this.#engine = engine
    this.#cursor = cursor
    this.#url = parseUrl(endpoint)
    this.#secrets = [endpoint.secret].flat().map(parseSecret)
    this.#kinds = new Set(checkKinds(endpoint.kinds ?? DEFAULT_KINDS))
    this.#retryMs = retryMs
    this.#onFailure = onFailure ?? warn
    this.#clock = clock
    this.#rules = { allowPrivate: endpoint.allowPrivate ?? false, resolve }
  }

  static async open(
    engine: WebhookEngine,
    endpoint: WebhookEndpoint,
    options: WebhookOptions,
    seams: WebhookSeams,
  ): Promise<Endpoint> {
    const url = parseUrl(endpoint)
    const name = createHash('sha256').update(url.href).digest('hex').slice(0, 16)
    const { clock = systemClock } = seams
    const cursor = await WebhookCursor.open(
      join(options.directory, `webhook-${name}.json`),
      clock.now(),
    )
    return new Endpoint(engine, endpoint, options, seams, cursor)
  }

  /** Resumes unfinished runs, and adds those created since the cursor was saved. */
  async resume(): Promise<void> {
    for (const runId of this.#cursor.runs.keys()) this.#enqueue(runId)
    let cursor: string | undefined
    const createdAfter = (this.#cursor.since - 1) / 1_000
    do {
      const page = await this.#engine.list({ createdAfter, limit: 1_000, cursor })
      for (const { run_id, created_at } of page.runs) {
        this.#cursor.add(run_id, Date.parse(created_at))
        this.#enqueue(run_id)
      }
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
  }

  observe({ details, events }: ObservedAppend): void {
    const { run_id, created_at } = details
    if (events[0]?.seq === 1) this.#cursor.add(run_id, Date.parse(created_at))
    const isOver = events.at(-1)?.kind === 'run_end'
    if (isOver || events.some(({ kind }) => this.#kinds.has(kind))) this.#enqueue(run_id)
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the service shuts down'))
    this.#waiting.clear()
    await Promise.all(this.#working.values())
    // An older cursor only means that some events are delivered twice.
    await this.#cursor.save().catch((error: unknown) => process.emitWarning(String(error)))
  }

  #enqueue(runId: string): void {
    if (this.#stop.signal.aborted) return
    this.#waiting.add(runId)
    this.#fill()
  }

  #fill(): void {
    for (const runId of this.#waiting) {
      if (this.#working.size >= CONCURRENT) return
      // Events of a run are delivered in order, so a run has one worker at a time.
      if (this.#working.has(runId)) continue
      this.#waiting.delete(runId)
      const work = this.#deliverRun(runId)
        .catch((error: unknown) => this.#fail(runId, error))
        .finally(() => {
          this.#working.delete(runId)
          this.#fill()
        })
      this.#working.set(runId, work)
    }
  }

  /** Delivers the wanted events of a run that are behind its cursor. */
  async #deliverRun(runId: string): Promise<void> {
    for (;;) {
      const after = this.#cursor.runs.get(runId)
      if (after === undefined || this.#stop.signal.aborted) return
      const events = await this.#engine.events(runId, { after, limit: PAGE })
      for (const event of events) {
        if (this.#kinds.has(event.kind)) {
          await this.#deliver(event)
          this.#cursor.advance(runId, event.seq)
          await this.#cursor.save()
        } else this.#cursor.advance(runId, event.seq)
        if (event.kind === 'run_end') {
          this.#cursor.finish(runId)
          return this.#cursor.save()
        }
      }
      if (events.length < PAGE) return
    }
  }

  /** Resolves when the event was accepted or given up. @throws the reason of `#stop` */
  async #deliver(event: AgentEvent): Promise<void> {
    const { signal } = this.#stop
    const id = `${event.run_id}.${event.seq}`
    const body = encode(event)
    const first = this.#clock.now()
    for (let attempts = 1; ; attempts++) {
      signal.throwIfAborted()
      const now = this.#clock.now()
      let problem: string
      let waitMs = backoffDelay(attempts, { firstMs: this.#retryMs, maxMs: MAX_RETRY_MS })
      let final = now - first >= GIVE_UP_MS
      try {
        const headers = signatureHeaders(this.#secrets, id, Math.floor(now / 1_000), body)
        const response = await deliver(this.#url, headers, body, this.#rules, signal)
        const { status, retryAfterMs } = response
        if (status >= 200 && status < 300) return
        problem = `the endpoint answered ${status}`
        if (status === 410) final = true
        waitMs = Math.min(Math.max(waitMs, retryAfterMs ?? 0), MAX_RETRY_MS)
      } catch (error) {
        signal.throwIfAborted()
        problem = error instanceof Error ? error.message : String(error)
      }
      const url = this.#url.origin + this.#url.pathname
      this.#report({ url, run_id: event.run_id, seq: event.seq, attempts, problem, final })
      if (final) return
      await sleep(waitMs, signal, this.#clock)
    }
  }

  #fail(runId: string, error: unknown): void {
    if (this.#stop.signal.aborted) return
    // The run was deleted.
    if (error instanceof UnknownRunError) return this.#cursor.finish(runId)
    process.emitWarning(`webhooks of run ${runId} stopped until its next event: ${String(error)}`)
  }

  #report(failure: WebhookFailure): void {
    try {
      this.#onFailure(failure)
    } catch (error) {
      process.emitWarning(`onFailure of webhooks failed: ${String(error)}`)
    }
  }
}

function encode(event: AgentEvent): string {
  const timestamp = new Date(Math.round(event.ts * 1_000)).toISOString()
  const body = JSON.stringify({ type: event.kind, timestamp, data: event })
  if (body.length <= MAX_BODY) return body
  return JSON.stringify({
    type: event.kind,
    timestamp,
    data: { ...event, payload: null },
    truncated: true,
  })
}

function parseUrl({ url, allowPrivate = false }: WebhookEndpoint): URL {
  const parsed = URL.canParse(url) ? new URL(url) : null
  const good = allowPrivate ? ['https:', 'http:'] : ['https:']
  if (parsed !== null && good.includes(parsed.protocol)) return parsed
  const hint = allowPrivate ? '' : '; http: needs allowPrivate'
  throw new TypeError(`webhooks: url must be an ${good.join(' or ')} address${hint}`)
}

function checkKinds(kinds: readonly EventKind[]): readonly EventKind[] {
  const wrong = kinds.find((kind) => !EVENT_KINDS.includes(kind))
  if (wrong === undefined && kinds.length > 0) return kinds
  throw new TypeError(`webhooks: kinds must be some of ${EVENT_KINDS.join(', ')}`)
}

function warn({ url, run_id, seq, attempts, problem, final }: WebhookFailure): void {
  // One warning for the first failure, and one when the event is given up.
  if (attempts > 1 && !final) return
  const then = final ? 'given up' : 'retrying'
  process.emitWarning(
    `webhook ${url}: event ${seq} of run ${run_id} was not accepted, ${then}: ${problem}`,
  )
}
