/**
 * Spans of what runs do, for a tracer of the host and for `node:diagnostics_channel`, named as the
 * GenAI conventions of OpenTelemetry name them.
 *
 * 1. Nobody listens: no span is made, no id drawn, nothing is timed. The question costs a few
 *    property reads.
 * 2. A tracer that throws is told of once and asked no more; a run never fails because of it.
 * 3. Attributes hold names, numbers and reasons, never the contents of messages: those are in the
 *    event log, found by `gen_ai.conversation.id`, which is the run's id.
 *
 * @module
 */
import { channel } from 'node:diagnostics_channel'
import type { Clock } from '../../internal/clock.js'
import type { Redactor } from '../redaction/redactor.js'
import {
  formatTraceparent,
  newSpanId,
  parseTraceparent,
  type TraceContext,
} from './trace-context.js'

/** What an attribute may be. */
export type AttributeValue = string | number | boolean | readonly string[]

/** Attributes by name. */
export interface SpanAttributes {
  readonly [name: string]: AttributeValue
}

/** One span: something that began, and ends later. */
export interface Span {
  /** For example `invoke_agent runwright`, `chat gpt-5-mini`, `execute_tool bash`. */
  readonly name: string
  /** `client` for model calls, `internal` for everything else. */
  readonly kind: 'client' | 'internal'
  /** The span around it; null for a run's own span. */
  readonly parent: Span | null
  /** The context that the run came with, for a run's own span; else null. */
  readonly remoteParent: TraceContext | null
  /**
   * The span's place in its trace, as it goes out in headers: with ids of our own, or with those
   * that {@link Tracer.startSpan} returned.
   */
  readonly context: TraceContext
  /** Milliseconds since the epoch, with fraction. */
  readonly startedAt: number
  /** Null until it has ended. */
  readonly endedAt: number | null
  /** More are added while it lasts. */
  readonly attributes: SpanAttributes
  /** `error` when what it stands for failed; `error.type` then says how. */
  readonly status: 'unset' | 'error'
  /** Why it failed, for people; empty otherwise. */
  readonly statusMessage: string
}

/** Something that happened during a span. */
export interface SpanEvent {
  readonly name: string
  /** Milliseconds since the epoch, with fraction. */
  readonly time: number
  readonly attributes: SpanAttributes
}

/**
 * The seam to tracing. Calls are synchronous and on the run's own path: hand over, do not wait. A
 * parent starts before its children and ends after them.
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
   * A span has begun. A tracer that draws its own ids returns the `traceparent` under which it
   * knows the span: children and outgoing requests then carry that.
   */
  startSpan(span: Span): string | undefined
  /** Something happened during the span. */
  addEvent(span: Span, event: SpanEvent): void
  /** The span has ended; its attributes are complete. */
  endSpan(span: Span): void
}

/** Messages are {@link Span}s. */
const started = channel('runwright.span.start')
/** Messages are `{ span, event }`. */
const happened = channel('runwright.span.event')
/** Messages are {@link Span}s. */
const ended = channel('runwright.span.end')

/** A span as we write it. */
export interface OpenSpan extends Span {
  context: TraceContext
  endedAt: number | null
  readonly attributes: { [name: string]: AttributeValue }
  status: 'unset' | 'error'
  statusMessage: string
}

/** What a span begins with. */
export interface SpanStart {
  readonly name: string
  readonly kind: Span['kind']
  readonly parent: Span | null
  readonly remoteParent: TraceContext | null
  /** Trace of a span without a parent: 32 hexadecimal digits. */
  readonly traceId: string
  readonly attributes: SpanAttributes
}

/** Tells spans to whoever listens. */
export class Tracing {
  #tracer: Tracer | null
  readonly #clock: Clock
  readonly #redactor: Redactor

  constructor(tracer: Tracer | null, clock: Clock, redactor: Redactor) {
    this.#tracer = tracer
    this.#clock = clock
    this.#redactor = redactor
  }

  /** Does anybody listen? Asked before anything is done for a span. */
  get isActive(): boolean {
    return (
      this.#tracer !== null ||
      ended.hasSubscribers ||
      started.hasSubscribers ||
      happened.hasSubscribers
    )
  }

  /** Begins a span; asked only while {@link Tracing.isActive}. */
  start({ name, kind, parent, remoteParent, traceId, attributes }: SpanStart): OpenSpan {
    const above = parseTraceparent((parent?.context ?? remoteParent)?.traceparent)
    const place = {
      traceId: above?.traceId ?? traceId,
      spanId: newSpanId(),
      sampled: above?.sampled ?? true,
    }
    const tracestate = (parent?.context ?? remoteParent)?.tracestate ?? null
    const span: OpenSpan = {
      name,
      kind,
      parent,
      remoteParent,
      context: { traceparent: formatTraceparent(place), tracestate },
      startedAt: this.#clock.now(),
      endedAt: null,
      attributes: { ...this.#redactor.value(attributes) },
      status: 'unset',
      statusMessage: '',
    }
    const own = parseTraceparent(this.#tell((tracer) => tracer.startSpan(span)))
    if (own !== null) span.context = { traceparent: formatTraceparent(own), tracestate }
    if (started.hasSubscribers) started.publish(span)
    return span
  }

  /** Notes something during a span. */
  event(span: OpenSpan | null, name: string, attributes: SpanAttributes): void {
    if (span === null) return
    const event: SpanEvent = {
      name,
      time: this.#clock.now(),
      attributes: this.#redactor.value(attributes),
    }
    this.#tell((tracer) => tracer.addEvent(span, event))
    if (happened.hasSubscribers) happened.publish({ span, event })
  }

  /** Ends a span; `failure` when what it stands for failed. Once is enough, twice is harmless. */
  end(span: OpenSpan | null, attributes: SpanAttributes = {}, failure?: SpanFailure): void {
    if (span === null || span.endedAt !== null) return
    Object.assign(span.attributes, this.#redactor.value(attributes))
    if (failure !== undefined) {
      span.attributes['error.type'] = failure.type
      span.status = 'error'
      span.statusMessage = this.#redactor.text(failure.message)
    }
    span.endedAt = Math.max(span.startedAt, this.#clock.now())
    this.#tell((tracer) => tracer.endSpan(span))
    if (ended.hasSubscribers) ended.publish(span)
  }

  #tell<T>(call: (tracer: Tracer) => T): T | undefined {
    if (this.#tracer === null) return undefined
    try {
      return call(this.#tracer)
    } catch (error) {
      this.#tracer = null
      process.emitWarning(`the tracer threw and is left out from now on: ${String(error)}`)
      return undefined
    }
  }
}

/** How something failed: `type` is one of few names, `message` is for people. */
export interface SpanFailure {
  readonly type: string
  readonly message: string
}
