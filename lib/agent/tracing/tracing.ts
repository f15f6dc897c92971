/**
 * Spans of runs, for the host's tracer and for `node:diagnostics_channel`, with the names of
 * OpenTelemetry's semantic conventions for GenAI.
 *
 * 1. Without a tracer or subscriber no span is created and nothing is timed; the check costs a few
 *    property reads.
 * 2. A tracer that throws causes one warning and is not called again; a run never fails because of
 *    it.
 * 3. The first span of a run begins at the time of day; from then on its times, and those of all
 *    spans below it, follow the steady clock.
 * 4. Attributes hold names, numbers and reasons, never the contents of messages. Those are in the
 *    event log of the run, whose id is `gen_ai.conversation.id`.
 *
 * @module
 */
import { channel } from 'node:diagnostics_channel'
import { steadyTime, type Clock } from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import type { TraceContext } from '../model.js'
import { warn } from '../output.js'
import type { Redactor } from '../redaction/redactor.js'
import { formatTraceparent, newSpanId, parseTraceparent } from './trace-context.js'

/** The part of OpenTelemetry's attribute types that spans of runs need. */
export type AttributeValue = string | number | boolean | readonly string[]

/** Attributes of a span or of a span's event, by name. */
export interface SpanAttributes {
  readonly [name: string]: AttributeValue
}

/** An operation with a beginning and an end. */
export interface Span {
  /** For example `invoke_agent runwright`, `chat gpt-5-mini`, `execute_tool bash`. */
  readonly name: string
  /** `client` for model calls, `internal` for everything else. */
  readonly kind: 'client' | 'internal'
  /** The span around it; null for a run's own span. */
  readonly parent: Span | null
  /** For a run's own span, the context of the request that created the run; else null. */
  readonly remoteParent: TraceContext | null
  /**
   * The span's position in its trace, as sent in headers: with generated ids, or with those that
   * {@link Tracer.startSpan} returned.
   */
  readonly context: TraceContext
  /** Milliseconds since the epoch, with fraction. */
  readonly startedAt: number
  /** Milliseconds since the epoch, with fraction; null until the span has ended. */
  readonly endedAt: number | null
  /** Attributes so far; complete once the span has ended. */
  readonly attributes: SpanAttributes
  /** `error` when the operation failed; the attribute `error.type` then says how. */
  readonly status: 'unset' | 'error'
  /** Why the operation failed, for people; else empty. */
  readonly statusMessage: string
}

/** A point in time during a span. */
export interface SpanEvent {
  readonly name: string
  /** Milliseconds since the epoch, with fraction. */
  readonly time: number
  readonly attributes: SpanAttributes
}

/**
 * The seam to tracing. Calls are synchronous and on the run's critical path, so an implementation
 * must not block. A parent starts before its children and ends after them.
 *
 * @example
 * ```ts
 * const tracer: Tracer = {
 *   startSpan: () => undefined,
 *   addEvent: () => undefined,
 *   endSpan: ({ name, startedAt, endedAt }) => console.log(name, (endedAt ?? 0) - startedAt, 'ms'),
 * }
 * ```
 */
export interface Tracer {
  /**
   * Called when a span begins. A tracer that generates its own ids returns its `traceparent` for
   * the span, which children and outgoing requests then carry.
   */
  startSpan(span: Span): string | undefined
  /** Called when an event is added to the span. */
  addEvent(span: Span, event: SpanEvent): void
  /** Called when the span has ended and its attributes are complete. */
  endSpan(span: Span): void
}

/** Messages are {@link Span}s. */
const started = channel('runwright.span.start')
/** Messages are `{ span, event }`. */
const happened = channel('runwright.span.event')
/** Messages are {@link Span}s. */
const ended = channel('runwright.span.end')

/** A span that can still change. */
export interface OpenSpan extends Span {
  context: TraceContext
  endedAt: number | null
  readonly attributes: { [name: string]: AttributeValue }
  status: 'unset' | 'error'
  statusMessage: string
}

/** What is known of a span at its beginning. */
export interface SpanStart {
  readonly name: string
  readonly kind: Span['kind']
  readonly parent: Span | null
  readonly remoteParent: TraceContext | null
  /** Trace of a span without a parent: 32 hexadecimal digits. */
  readonly traceId: string
  readonly attributes: SpanAttributes
}

/** Publishes spans to the tracer and to the diagnostics channels. */
export class Tracing {
  #tracer: Tracer | null
  readonly #clock: Clock
  readonly #redactor: Redactor
  /** The time by which a span and those below it are measured. */
  readonly #times = new WeakMap<Span, () => number>()

  constructor(tracer: Tracer | null, clock: Clock, redactor: Redactor) {
    this.#tracer = tracer
    this.#clock = clock
    this.#redactor = redactor
  }

  /** Whether there is a tracer or a subscriber; checked before a span is created. */
  get isActive(): boolean {
    return (
      this.#tracer !== null ||
      ended.hasSubscribers ||
      started.hasSubscribers ||
      happened.hasSubscribers
    )
  }

  /** Begins a span; call it only while {@link Tracing.isActive}. */
  start({ name, kind, parent, remoteParent, traceId, attributes }: SpanStart): OpenSpan {
    const outer = parent?.context ?? remoteParent
    const above = parseTraceparent(outer?.traceparent)
    const ids = {
      traceId: above?.traceId ?? traceId,
      spanId: newSpanId(),
      sampled: above?.sampled ?? true,
    }
    const tracestate = outer?.tracestate ?? null
    const time = (parent === null ? undefined : this.#times.get(parent)) ?? steadyTime(this.#clock)
    const span: OpenSpan = {
      name: this.#redactor.text(name),
      kind,
      parent,
      remoteParent,
      context: { traceparent: formatTraceparent(ids), tracestate },
      startedAt: time(),
      endedAt: null,
      attributes: { ...this.#redactor.value(attributes) },
      status: 'unset',
      statusMessage: '',
    }
    this.#times.set(span, time)
    const own = parseTraceparent(this.#notify((tracer) => tracer.startSpan(span)))
    if (own !== null) span.context = { traceparent: formatTraceparent(own), tracestate }
    if (started.hasSubscribers) started.publish(span)
    return span
  }

  /** Adds an event to a span. */
  event(span: OpenSpan | null, name: string, attributes: SpanAttributes): void {
    if (span === null) return
    const event: SpanEvent = {
      name,
      time: this.#timeOf(span),
      attributes: this.#redactor.value(attributes),
    }
    this.#notify((tracer) => tracer.addEvent(span, event))
    if (happened.hasSubscribers) happened.publish({ span, event })
  }

  /** Ends a span, with `failure` if the operation failed. Idempotent. */
  end(span: OpenSpan | null, attributes: SpanAttributes = {}, failure?: SpanFailure): void {
    if (span === null || span.endedAt !== null) return
    Object.assign(span.attributes, this.#redactor.value(attributes))
    if (failure !== undefined) {
      span.attributes['error.type'] = failure.type
      span.status = 'error'
      span.statusMessage = this.#redactor.text(failure.message)
    }
    span.endedAt = this.#timeOf(span)
    this.#notify((tracer) => tracer.endSpan(span))
    if (ended.hasSubscribers) ended.publish(span)
  }

  #timeOf(span: OpenSpan): number {
    return this.#times.get(span)!()
  }

  #notify<T>(call: (tracer: Tracer) => T): T | undefined {
    if (this.#tracer === null) return undefined
    try {
      return call(this.#tracer)
    } catch (error) {
      this.#tracer = null
      warn(`the tracer threw and will not be called again: ${describeError(error)}`)
      return undefined
    }
  }
}

/** How something failed: `type` is one of few names, `message` is for people. */
export interface SpanFailure {
  readonly type: string
  readonly message: string
}
