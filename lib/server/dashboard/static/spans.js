/**
 * What a run spends its time on, as spans on its time axis. Pure.
 *
 * 1. The log says when most things end, and of some when they begin. A model call begins with what
 *    came before it: the start of a step, the results of the calls before, an answer at a gate.
 * 2. Time never goes backwards: an event whose clock is behind counts as of the event before.
 * 3. What the process was doing when it died ends with the last event before, as `lost`. The time
 *    until another process took over is a span of its own.
 * 4. Logs of earlier versions lack fields and kinds: what is unknown is left out.
 */

/** @typedef {import('../types.js').AgentEvent} AgentEvent */
/** @typedef {'plan' | 'model' | 'tool' | 'check' | 'gate' | 'wait' | 'child' | 'files'} SpanKind */

/**
 * `seq` of the event that tells most of it; times in seconds since the first event, `end` null
 * while it lasts; `cost` in US dollars, null for an unknown price.
 *
 * @typedef {{
 *   kind: SpanKind,
 *   seq: number,
 *   iteration: number,
 *   name: string,
 *   detail: string,
 *   start: number,
 *   end: number | null,
 *   state: '' | 'good' | 'bad' | 'lost',
 *   tokens: number,
 *   cost: number | null,
 * }} Span
 */

/** How the log tells of waits and of failed calls, which have no kind of their own. */
export const WAITS = /^waiting for (?:a slot|the machine|[^\n]{1,200}?: the limit of)/
export const RETRIES = /^model call failed, attempt (\d{1,6})/

/** Seconds from which on something is worth a bar that may have been nothing. */
const SEEN_S = 0.5
/** Characters of a detail. */
const DETAIL = 200

const PURPOSES = { worker: 'Model', judge: 'Judge', summary: 'Summary' }

/** @param {unknown} text @returns {string} its first line, shortened */
function firstLine(text) {
  if (typeof text !== 'string') return ''
  return (text.slice(0, 4 * DETAIL).trimStart().split('\n', 1)[0] ?? '').slice(0, DETAIL)
}

/** The most telling argument of a call. @param {unknown} args */
function argumentOf(args) {
  if (typeof args !== 'object' || args === null) return ''
  const values = Object.entries(args)
  const [, main] =
    values.find(([name]) => ['command', 'path', 'pattern', 'query', 'url'].includes(name)) ??
    values.find(([, value]) => typeof value === 'string') ?? []
  return firstLine(main)
}

/** @param {unknown} value */
function finite(value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}

/** The spans of one run, as its events come. */
export class Spans {
  /** In the order in which they were found. @type {Span[]} */
  #spans = []
  /** What is going on, unless the next event shows that it is not. @type {Span | null} */
  #next = null
  /**
   * Calls without a result, by id, with the time of the call.
   *
   * @type {Map<string, { event: AgentEvent, at: number, span: Span | null }>}
   */
  #calls = new Map()
  /** Gates, children and operations that last, by their ids. @type {Map<string, Span>} */
  #open = new Map()
  /** A wait that the next event ends. @type {Span | null} */
  #wait = null
  /** The call whose turn has not been seen. @type {Span | null} */
  #unanswered = null
  /** A call that failed, of which the log may say more. @type {Span | null} */
  #failed = null
  #origin = 0
  #now = 0
  /** When the last thing ended after which a model call may begin. */
  #free = 0
  #planning = false
  #count = 0
  ended = false

  /** Seconds from the first event to the last. */
  get duration() {
    return this.#now
  }

  /** Seconds since the epoch of the first event. */
  get origin() {
    return this.#origin
  }

  /** All spans so far. @returns {readonly Span[]} */
  get all() {
    return this.#next === null ? this.#spans : [...this.#spans, this.#next]
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    for (const event of events) this.#take(event)
  }

  /** @param {AgentEvent} event */
  #take(event) {
    if (this.#count === 0) this.#origin = finite(event.ts)
    this.#count += 1
    const before = this.#now
    this.#now = Math.max(before, finite(event.ts) - this.#origin)
    if (this.#wait !== null && !(event.kind === 'log' && WAITS.test(event.payload.message))) {
      this.#wait.end = this.#now
      this.#wait = null
    }
    switch (event.kind) {
      case 'run_created':
        return void this.#open.set('queue', this.#make('wait', event, 'Queued'))
      case 'run_started':
        return this.#started()
      case 'run_suspended':
      case 'run_recovered':
        return this.#interrupted(event, before)
      case 'step_start':
        return this.#step(event)
      case 'llm_usage':
        return this.#used(event)
      case 'model_turn':
        return this.#answered(event)
      case 'model_switched':
        return this.#begin(null)
      case 'tool_call':
        this.#calls.set(event.payload.call_id, { event, at: this.#now, span: null })
        return this.#begin(null)
      case 'tool_started':
        return this.#toolStarted(event)
      case 'tool_result':
        return this.#toolEnded(event)
      case 'goal_check':
        return this.#checked(event)
      case 'log':
        return this.#logged(event)
      case 'run_end':
        return this.#finish()
      default:
        return this.#paired(event)
    }
  }

  /**
   * @param {SpanKind} kind
   * @param {AgentEvent} event
   * @param {string} name
   * @param {string} [detail]
   * @returns {Span}
   */
  #make(kind, { seq, iteration }, name, detail = '') {
    const facts = { tokens: 0, cost: 0, state: /** @type {const} */ ('') }
    return { kind, seq, iteration, name, detail, start: this.#now, end: null, ...facts }
  }

  /** @param {Span} span */
  #push(span) {
    this.#spans.push(span)
    return span
  }

  /** Something else begins, or nothing is known to. @param {Span | null} next */
  #begin(next) {
    this.#next = next
    this.#free = this.#now
  }

  #started() {
    const queued = this.#open.get('queue')
    this.#open.delete('queue')
    if (queued !== undefined && this.#now - queued.start >= SEEN_S) {
      queued.end = this.#now
      this.#push(queued)
    }
    this.#begin(null)
  }

  /**
   * @param {AgentEvent & { kind: 'run_suspended' | 'run_recovered' }} event
   * @param {number} before when the event before was
   */
  #interrupted(event, before) {
    const isOver = event.kind === 'run_recovered'
    const at = isOver ? before : this.#now
    for (const call of this.#calls.values()) {
      if (call.span !== null && call.span.end === null) lose(call.span, at)
    }
    this.#loseNext(at)
    const name = isOver ? 'Taken over after a crash' : 'Service stopped'
    const down = this.#push(this.#make('wait', event, name))
    if (isOver) {
      down.start = Math.min(at, this.#now)
      down.end = this.#now
    } else this.#wait = down
    this.#begin(null)
  }

  /** @param {AgentEvent & { kind: 'step_start' }} event */
  #step(event) {
    const { node } = event.payload
    this.#planning = node === 'plan'
    if (node === 'plan') this.#begin(this.#make('plan', event, 'Plan'))
    else if (node === 'evaluate') this.#begin(this.#make('check', event, 'Goal check'))
    else this.#begin(null)
  }

  /** @param {AgentEvent} event */
  #modelCall(event) {
    this.#failed = null
    const expected = this.#next
    if (expected !== null && expected.kind !== 'check') {
      this.#next = null
      return this.#push(expected)
    }
    const span = this.#make(this.#planning ? 'plan' : 'model', event, 'Model')
    if (this.#planning) span.name = 'Plan'
    span.start = this.#free
    return this.#push(span)
  }

  /** @param {AgentEvent & { kind: 'llm_usage' }} event */
  #used(event) {
    const { input_tokens, output_tokens, cost_usd, purpose, failed, model_name } = event.payload
    const isOwn = purpose === 'worker' || purpose === undefined
    const expected = this.#next
    const span = isOwn
      ? this.#modelCall(event)
      : this.#push(this.#make('model', event, PURPOSES[purpose] ?? 'Model'))
    if (!isOwn) span.start = this.#free
    span.seq = event.seq
    span.end = this.#now
    span.tokens = finite(input_tokens) + finite(output_tokens)
    span.cost = cost_usd === undefined ? 0 : cost_usd
    span.detail = model_name ?? ''
    span.state = failed === true ? 'bad' : 'good'
    this.#free = this.#now
    this.#unanswered = isOwn && failed !== true ? span : null
    this.#planning &&= !isOwn || failed === true
    if (failed === true && isOwn) {
      this.#failed = span
      this.#next = this.#make(span.kind, event, span.name)
    } else if (!isOwn && expected !== null && expected.kind !== 'check') {
      // A summary made room for the call that is expected.
      expected.start = this.#now
    }
  }

  /** @param {AgentEvent & { kind: 'model_turn' }} event */
  #answered(event) {
    const span = this.#unanswered ?? this.#modelCall(event)
    this.#unanswered = null
    span.end = this.#now
    span.state = 'good'
    const said = firstLine(event.payload.text)
    if (said !== '' && event.payload.gives_result !== true) {
      span.seq = event.seq
      span.detail = said
    }
    this.#planning = false
    this.#begin(null)
  }

  /** @param {AgentEvent & { kind: 'tool_started' }} event */
  #toolStarted({ payload }) {
    const call = this.#calls.get(payload.call_id)
    // A second record of the same start only adds its process group.
    if (call === undefined || call.span?.end === null) return
    call.span = this.#push(this.#tool(call.event))
  }

  /** @param {AgentEvent} event */
  #tool(event) {
    const call = event.kind === 'tool_call' ? event.payload : { tool: 'tool', args: null }
    return this.#make('tool', event, call.tool, argumentOf(call.args))
  }

  /** @param {AgentEvent & { kind: 'tool_result' }} event */
  #toolEnded(event) {
    const { call_id, tool, exit_code, duration_ms } = event.payload
    const call = this.#calls.get(call_id)
    const seconds = Math.max(0, finite(duration_ms)) / 1_000
    let span = call?.span
    if (span === null || span === undefined) {
      // It was refused, or its start is not in the log.
      span = this.#push(this.#tool(call?.event ?? event))
      span.name = tool
      span.start = Math.max(call?.at ?? this.#free, this.#now - seconds)
    }
    // Results come in the order of the calls: one that was faster than those before it waited.
    if (span.end === null) {
      const own = seconds > 0 ? span.start + seconds : this.#now
      span.end = Math.min(this.#now, own)
    }
    if (span.state !== 'lost' || exit_code !== -1) span.state = exit_code === 0 ? 'good' : 'bad'
    this.#calls.delete(call_id)
    this.#begin(this.#calls.size === 0 ? this.#make('model', event, 'Model') : null)
  }

  /** @param {AgentEvent & { kind: 'goal_check' }} event */
  #checked(event) {
    const { achieved, reason, duration_ms, cached } = event.payload
    const began = this.#next?.kind === 'check' ? this.#next : null
    const span = this.#push(began ?? this.#make('check', event, 'Goal check'))
    const seconds = Math.max(0, finite(duration_ms)) / 1_000
    span.start = Math.max(began === null ? 0 : began.start, this.#now - seconds)
    span.end = this.#now
    span.seq = event.seq
    span.detail = cached === true ? 'unchanged since the last check' : firstLine(reason)
    span.state = achieved ? 'good' : 'bad'
    this.#begin(null)
  }

  /** @param {AgentEvent & { kind: 'log' }} event */
  #logged(event) {
    const { message } = event.payload
    const [, attempt] = RETRIES.exec(message) ?? []
    if (attempt !== undefined) {
      const failed = this.#failed ?? this.#unanswered ?? this.#modelCall(event)
      failed.end ??= this.#now
      Object.assign(failed, { seq: event.seq, state: 'bad', detail: firstLine(message) })
      this.#unanswered = this.#failed = null
      const name = `${PURPOSES.worker}, attempt ${Number(attempt) + 1}`
      this.#begin(this.#make(failed.kind, event, name))
    } else if (WAITS.test(message) && this.#wait === null) {
      this.#wait = this.#push(this.#make('wait', event, 'Waiting', firstLine(message)))
    }
  }

  /** Kinds of which one begins and one ends. @param {AgentEvent} event */
  #paired(event) {
    switch (event.kind) {
      case 'human_check_required': {
        const { gate_id, summary } = event.payload
        this.#begin(null)
        return this.#opened(`gate ${gate_id}`, 'gate', event, 'Gate', firstLine(summary))
      }
      case 'human_check_response': {
        const { gate_id, decision, decided_by } = event.payload
        const who = decided_by === null || decided_by === undefined ? '' : ` by ${decided_by}`
        const state = decision === 'approve' ? 'good' : 'bad'
        this.#closed(`gate ${gate_id}`, state, `${decision}${who}`)
        return this.#begin(null)
      }
      case 'attempt_started': {
        const { run_id, attempt, model_name } = event.payload
        return this.#opened(`run ${run_id}`, 'child', event, `Attempt ${attempt}`, model_name)
      }
      case 'delegate_started': {
        const { run_id, number, goal } = event.payload
        return this.#opened(`run ${run_id}`, 'child', event, `Delegate ${number}`, firstLine(goal))
      }
      case 'attempt_ended':
      case 'delegate_ended': {
        const { run_id, status, reason } = event.payload
        return this.#closed(`run ${run_id}`, status === 'achieved' ? 'good' : 'bad', reason)
      }
      case 'files_changing': {
        const { operation_id, operation } = event.payload
        return this.#opened(`files ${operation_id}`, 'files', event, `Files: ${operation}`)
      }
      case 'files_changed':
        return this.#closed(`files ${event.payload.operation_id}`, 'good')
    }
  }

  /**
   * @param {string} id
   * @param {SpanKind} kind
   * @param {AgentEvent} event
   * @param {string} name
   * @param {string} [detail]
   */
  #opened(id, kind, event, name, detail) {
    this.#open.set(id, this.#push(this.#make(kind, event, name, detail)))
  }

  /**
   * @param {string} id
   * @param {'good' | 'bad'} state
   * @param {unknown} [detail]
   */
  #closed(id, state, detail) {
    const span = this.#open.get(id)
    if (span === undefined) return
    this.#open.delete(id)
    span.end = this.#now
    span.state = state
    span.detail = firstLine(detail) || span.detail
  }

  /** What was going on, if it was: a moment is only the way from one step to the next. */
  #loseNext(/** @type {number} */ at) {
    if (this.#next !== null && at - this.#next.start >= SEEN_S) lose(this.#push(this.#next), at)
  }

  /** Whatever has no end by now never had one. */
  #finish() {
    this.#loseNext(this.#now)
    const queued = this.#open.get('queue')
    if (queued !== undefined) this.#push(queued)
    for (const span of this.#open.values()) lose(span, this.#now)
    for (const { span } of this.#calls.values()) {
      if (span !== null && span.end === null) lose(span, this.#now)
    }
    this.#open.clear()
    this.#calls.clear()
    this.ended = true
    this.#begin(null)
  }
}

/**
 * @param {Span} span
 * @param {number} at
 */
function lose(span, at) {
  span.end = Math.max(span.start, at)
  span.state = 'lost'
}
