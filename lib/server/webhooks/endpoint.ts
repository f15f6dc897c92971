import { createHash, createHmac } from 'node:crypto'
import { join } from 'node:path'
import {
  type AgentEvent, type EventKind, type ObservedAppend, type RunEngine, type RunQuery, StoreError,
  UnknownRunError,
} from '../../agent/index.js'
import { backoffDelay, type Clock, steadyTime } from '../../internal/time.js'
import { callHost } from '../../internal/web.js'
import { addCredential, describeError, warn } from '../../internal/errors.js'
import { type Progress, WebhookCursor } from './cursor.js'
import { deliver, type Delivered, type ResolveName, type TargetRules } from './delivery.js'
import {
  parseKinds, parseUrl, warnOfFailure, type WebhookEndpoint, type WebhookFailure,
  type WebhookOptions,
} from './options.js'
import { Schedule, type TurnEnd } from './schedule.js'

/** The part of an engine that deliveries read. */
export type WebhookEngine = Pick<RunEngine, 'events' | 'list' | 'observe'>

const DEFAULT_RETRY_MS = 1_000
const MAX_RETRY_MS = 3_600_000
/** Time after which an event is given up, in milliseconds. */
const GIVE_UP_MS = 3 * 24 * 3_600_000
/** Milliseconds after which a run with more events lets others go first. */
const TURN_MS = 1_000
/** Until a failed read of the log is repeated, in milliseconds. */
const READ_RETRY_MS = 10_000
/** Events read from the store at a time. */
const PAGE = 256
/** Runs listed at a time. */
const LISTED = 1_000
/** Characters of a delivery; the payload of a larger event is left out. */
const MAX_BODY = 262_144

/** Deliveries to one receiver: several runs at once, the events of each in order. */
export class Endpoint {
  readonly #engine: WebhookEngine
  readonly #cursor: WebhookCursor
  readonly #schedule: Schedule
  readonly #url: URL
  readonly #secrets: readonly Buffer[]
  readonly #kinds: ReadonlySet<EventKind>
  readonly #retryMs: number
  readonly #onFailure: (failure: WebhookFailure) => void
  readonly #clock: Clock
  /** For waits, whose stored times the next process compares with the time of day. */
  readonly #now: () => number
  readonly #rules: TargetRules
  readonly #stop = new AbortController()
  /** The newest wanted event of runs that had ended, and of which something is to be delivered. */
  readonly #late = new Map<string, number>()
  /** Since when the store could not be read, by `#now`; null when it could. */
  #unreadable: number | null = null

  private constructor(
    engine: WebhookEngine,
    endpoint: WebhookEndpoint,
    { retryMs = DEFAULT_RETRY_MS, onFailure = warnOfFailure }: WebhookOptions,
    seams: { readonly clock: Clock; readonly resolve: ResolveName | undefined },
    cursor: WebhookCursor,
  ) {
    const { clock, resolve } = seams
    this.#engine = engine
    this.#cursor = cursor
    this.#schedule = new Schedule((runId) => this.#turn(runId), clock)
    this.#url = parseUrl(endpoint)
    this.#secrets = [endpoint.secret].flat().map(parseSecret)
    this.#kinds = parseKinds(endpoint)
    this.#retryMs = retryMs
    this.#onFailure = onFailure
    this.#clock = clock
    this.#now = steadyTime(clock)
    this.#rules = { allowPrivate: endpoint.allowPrivate ?? false, resolve }
  }

  static async open(
    engine: WebhookEngine,
    endpoint: WebhookEndpoint,
    options: WebhookOptions,
    seams: { readonly clock: Clock; readonly resolve: ResolveName | undefined },
  ): Promise<Endpoint> {
    const { href } = parseUrl(endpoint)
    const name = createHash('sha256').update(href).digest('hex').slice(0, 16)
    const path = join(options.directory, `webhook-${name}.json`)
    const cursor = await WebhookCursor.open(path, seams.clock)
    return new Endpoint(engine, endpoint, options, seams, cursor)
  }

  /** Resumes unfinished runs, and adds those that were not saved. */
  async resume(): Promise<void> {
    for (const [runId, { attempts, next }] of this.#cursor.runs) {
      // A longer wait means that the clock was set back.
      const ms = next - this.#now()
      if (attempts > 0) this.#schedule.retryIn(runId, ms > MAX_RETRY_MS ? 0 : Math.max(0, ms))
      else this.#schedule.add(runId)
    }
    await this.#addListed({ createdAfter: this.#cursor.known / 1_000 })
    // The clock may have been set back before one of these was created.
    await this.#addListed({
      createdAfter: this.#cursor.start / 1_000,
      status: ['pending', 'running', 'awaiting_human'],
    })
  }

  observe({ details, events }: ObservedAppend): void {
    const { run_id } = details
    const [first] = events
    if (first === undefined) return
    const isOver = events.some(({ kind }) => kind === 'run_end')
    const isWanted = events.some(({ kind }) => this.#kinds.has(kind))
    // What becomes of the files of a run that has ended before.
    const isLate = details.ended_at !== null && !isOver
    if (this.#cursor.runs.has(run_id)) {
      if (isLate && isWanted) this.#late.set(run_id, events.at(-1)!.seq)
    } else {
      const created = Date.parse(details.created_at)
      // Another run may have been saved before this one, and the process killed in between.
      const isMissed = first.seq !== 1 && created > this.#cursor.start
      if (isMissed && isLate) {
        if (isWanted) this.#cursor.addAgain(run_id, created, first.seq - 1)
      } else if (first.seq === 1 || isMissed) this.#cursor.add(run_id, created)
    }
    if (isOver || isWanted) this.#schedule.add(run_id)
  }

  /** Deliveries in progress are aborted, and repeated after the next start. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the service shuts down'))
    await this.#schedule.close()
    await this.#cursor.close()
  }

  async #addListed(query: Partial<RunQuery>): Promise<void> {
    let cursor: string | undefined
    do {
      const page = await this.#engine.list({ ...query, limit: LISTED, cursor })
      for (const { run_id, created_at } of page.runs) {
        if (this.#cursor.runs.has(run_id)) continue
        this.#cursor.add(run_id, Date.parse(created_at))
        this.#schedule.add(run_id)
      }
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
  }

  /** Never rejects. */
  async #turn(runId: string): Promise<TurnEnd> {
    try {
      return await this.#deliverRun(runId)
    } catch (error) {
      if (this.#stop.signal.aborted) return 'idle'
      if (error instanceof UnknownRunError) {
        // The run was deleted.
        this.#finish(runId)
        return 'idle'
      }
      return isDamage(error) ? 'idle' : this.#afterFailedRead(error)
    }
  }

  /** Delivers the wanted events of a run that are behind its cursor, for some time. */
  async #deliverRun(runId: string): Promise<TurnEnd> {
    const progress = this.#cursor.runs.get(runId)
    if (progress === undefined) return 'idle'
    const began = this.#now()
    const events = await this.#engine.events(runId, { after: progress.seq, limit: PAGE })
    this.#unreadable = null
    for (const event of events) {
      const isWanted = this.#kinds.has(event.kind)
      const next = isWanted ? await this.#attempt(event, progress) : null
      if (next !== null) return next
      this.#cursor.advance(runId, event.seq)
      if (event.kind === 'run_end') this.#cursor.update(runId, { ended: 1 })
      // An event may have been stored since this page was read.
      const isRead = event === events.at(-1) && events.length < PAGE
      const isLast = isRead && !this.#hasMore(runId, progress)
      if (isLast && progress.ended === 1) this.#finish(runId)
      if (isWanted) void this.#cursor.save()
      if (isLast) return 'idle'
      if (this.#now() - began >= TURN_MS) return 'more'
    }
    if (events.length > 0 || this.#hasMore(runId, progress)) return 'more'
    if (progress.ended === 1) this.#finish(runId)
    return 'idle'
  }

  #hasMore(runId: string, { seq }: Readonly<Progress>): boolean {
    return (this.#late.get(runId) ?? 0) > seq
  }

  #finish(runId: string): void {
    this.#late.delete(runId)
    this.#cursor.finish(runId)
  }

  /**
   * One attempt to deliver an event.
   *
   * @returns milliseconds until the next one; null when the event was accepted or is given up.
   * @throws the reason of `#stop`
   */
  async #attempt(event: AgentEvent, progress: Readonly<Progress>): Promise<number | null> {
    const { run_id, seq } = event
    const now = Math.floor(this.#now())
    // A time in the future means that the clock was set back.
    if (progress.first === 0 || progress.first > now) {
      this.#cursor.update(run_id, { first: now })
      await this.#cursor.save()
    }
    const { problem, status, retryAfterMs } = await this.#send(event)
    if (problem === null) return null
    const final = status === 410 || now - progress.first >= GIVE_UP_MS
    const attempts = progress.attempts + 1
    const url = this.#url.origin + this.#url.pathname
    this.#report({ url, run_id, seq, attempts, problem, final })
    if (final) return null
    const delay = backoffDelay(attempts, { firstMs: this.#retryMs, maxMs: MAX_RETRY_MS })
    const waitMs = Math.min(Math.max(delay, retryAfterMs ?? 0), MAX_RETRY_MS)
    const next = Math.floor(this.#now() + waitMs)
    this.#cursor.update(run_id, { attempts, next })
    void this.#cursor.save()
    return waitMs
  }

  /** `problem` is null when the event was accepted. @throws the reason of `#stop` */
  async #send(event: AgentEvent): Promise<Delivered & { readonly problem: string | null }> {
    const { signal } = this.#stop
    signal.throwIfAborted()
    const body = encode(event)
    const seconds = Math.floor(this.#clock.now() / 1_000)
    const id = `${event.run_id}.${event.seq}`
    try {
      const headers = signatureHeaders(this.#secrets, id, seconds, body)
      const response = await deliver(this.#url, headers, body, this.#rules, signal)
      const isAccepted = response.status >= 200 && response.status < 300
      const problem = isAccepted ? null : `the endpoint answered ${response.status}`
      return { ...response, problem }
    } catch (error) {
      signal.throwIfAborted()
      const problem = describeError(error)
      return { status: 0, retryAfterMs: null, problem }
    }
  }

  /** The store may be unavailable for some time, or closing: returns when to read it again. */
  #afterFailedRead(error: unknown): number {
    const now = this.#now()
    const since = (this.#unreadable ??= now)
    if (since !== -Infinity && now - since >= READ_RETRY_MS) {
      this.#unreadable = -Infinity
      warn(`webhooks: runs cannot be read, deliveries wait: ${describeError(error)}`)
    }
    return READ_RETRY_MS
  }

  #report(failure: WebhookFailure): void {
    callHost(
      () => this.#onFailure(failure),
      (error) => warn(`onFailure of webhooks failed: ${describeError(error)}`),
    )
  }
}

/** A damaged run is not read again until it is used; {@link RunEngine.damage} has the cause. */
function isDamage(error: unknown): boolean {
  if (!(error instanceof StoreError)) return false
  return error.code === 'ERR_AGENT_STORE_CORRUPT' || error.code === 'ERR_AGENT_STORE_VERSION'
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

/** Bytes of a secret (Standard Webhooks). */
const MIN_SECRET = 24
const MAX_SECRET = 64

/**
 * Parses `whsec_` followed by the base64 of 24 to 64 bytes, and has it masked in whatever is
 * written.
 *
 * @throws TypeError, which does not quote the secret.
 */
function parseSecret(secret: unknown): Buffer {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(secret)) ?? []
  const bytes = Buffer.from(encoded ?? '', 'base64')
  if (encoded !== undefined && bytes.length >= MIN_SECRET && bytes.length <= MAX_SECRET) {
    addCredential(encoded)
    return bytes
  }
  throw new TypeError(
    `webhooks: a secret must be whsec_ and base64 of ${MIN_SECRET} to ${MAX_SECRET} bytes`,
  )
}

/** The headers of a delivery (Standard Webhooks): id, time, and a signature for each secret. */
function signatureHeaders(
  secrets: readonly Buffer[],
  id: string,
  seconds: number,
  body: string,
): Record<string, string> {
  const signed = `${id}.${seconds}.${body}`
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`,
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signatures.join(' '),
  }
}
