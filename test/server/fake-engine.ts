import type {
  AgentEvent,
  ChildEnd,
  ChildRole,
  EncodedEvent,
  EventKind,
  EventPayloads,
  FolderOffer,
  ResolvedRequest,
  RunDetails,
  RunObserver,
  RunSubscription,
  RunSummary,
  StoreDamage,
  SubscriptionEnd,
} from 'runwright/agent'
import type { ServiceEngine } from 'runwright/server'
import {
  CursorError,
  EngineClosedError,
  InvalidRequestError,
  RunStateError,
  UnknownRunError,
} from 'runwright/agent'

import { FakeWorkspaces } from './fake-workspaces.js'

type Caller = Parameters<ServiceEngine['get']>[1]

/** An argument of a call; of a caller only its owner, as signals differ from call to call. */
function withoutSignal(argument: unknown): unknown {
  const caller = argument as Caller | null
  return caller?.signal === undefined ? argument : { owner: caller.owner }
}

interface FakeRun {
  readonly details: RunDetails
  readonly tenant: string | null
  readonly events: AgentEvent[]
  readonly encoded: EncodedEvent[]
  readonly readers: Set<FakeSubscription>
  end: SubscriptionEnd | undefined
  /** Set for a run that lists show as damaged. */
  problem: string | null
}

/**
 * An engine whose runs do nothing: a test appends the events itself, one by one, and so decides
 * what a subscriber sees and when.
 */
export class FakeEngine implements ServiceEngine {
  /** Time of the events appended next. */
  iteration = 0
  readonly runs: Map<string, FakeRun> = new Map()
  /** Thrown by the next call of any method. */
  failure: unknown = null
  /** Arguments of the calls, by method. */
  readonly calls: unknown[][] = []
  /** Queued runs, of at most 2. */
  queued = 0
  /** The error of `check()`, when the store cannot be written. */
  broken: Error | null = null
  readonly observers: Set<RunObserver> = new Set()
  damaged: StoreDamage = { runs: [], files: [] }
  #closed = false

  /** Adds a run with its first event only. */
  add(tenant: string | null = null): string {
    const index = String(this.runs.size + 1).padStart(12, '0')
    const runId = `01930000-0000-7000-8000-${index}`
    const details: RunDetails = {
      run_id: runId,
      goal: 'node-test',
      status: 'running',
      model_name: 'builtin:repair',
      max_iterations: 20,
      hitl_enabled: false,
      cwd: '/tmp',
      error: null,
      final_state: {
        iteration: 0,
        goal_achieved: false,
        goal_reason: '',
        total_tokens: 0,
        estimated_cost_usd: 0,
      },
      created_at: '2026-01-01T00:00:00.000Z',
      started_at: null,
      ended_at: null,
      iteration: 0,
      end_reason: null,
      gate: null,
      last_seq: 0,
      parent_run_id: null,
      metadata: {},
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        cached_tokens: 0,
        reasoning_tokens: 0,
        estimated_tokens: 0,
        model_calls: 0,
        tool_calls: 0,
      },
      cost_known: true,
      check: null,
      approval: 'never',
      max_total_tokens: null,
      max_cost_usd: null,
      max_seconds: null,
      max_tool_calls: null,
      temperature: null,
      reasoning_effort: null,
      max_output_tokens: null,
      workspace: 'in_place',
      checkpoint_id: null,
      changes: null,
      forked_from: null,
      assurance: null,
      check_files: null,
      held_back: null,
      changed_tests: null,
      allowed: null,
      may_change: null,
      root_run_id: runId,
      role: 'root',
      attempts: null,
      delegation: null,
      delegates: 0,
      instructions: null,
      project_instructions: null,
      tools: null,
      compaction: 'drop',
      plan: null,
      images: 0,
      fallback_models: null,
      active_model: 'builtin:repair',
      usage_by_model: null,
      result_schema: null,
      result: null,
      answer: '',
    }
    this.runs.set(runId, {
      details,
      tenant,
      events: [],
      encoded: [],
      readers: new Set(),
      end: undefined,
      problem: null,
    })
    this.append(runId, 'run_started', {})
    return runId
  }

  /** Changes the details of a run. */
  set(runId: string, facts: Partial<RunDetails>): void {
    Object.assign(this.runs.get(runId)!.details, facts)
  }

  /** Adds a run that another one started; its parent's log says so. */
  addChild(parentId: string, role: ChildRole, facts: Partial<RunDetails> = {}): string {
    const parent = this.runs.get(parentId)!
    const runId = this.add(parent.tenant)
    const { root_run_id } = parent.details
    this.set(runId, { parent_run_id: parentId, root_run_id, role, ...facts })
    const { goal, model_name } = this.runs.get(runId)!.details
    if (role === 'delegate') {
      const number = (parent.details.delegates += 1)
      const checkpoint_id = 'c'.repeat(64)
      const started = { call_id: 'c1', number, run_id: runId, goal, checkpoint_id }
      this.append(parentId, 'delegate_started', started)
      return runId
    }
    const { attempts } = parent.details
    const runs = attempts?.runs ?? []
    const attempt = runs.length + 1
    const info = { attempt, run_id: runId, model_name, status: null, reason: '' }
    this.set(parentId, {
      attempts: {
        count: Math.max(attempt, attempts?.count ?? 0),
        choose: attempts?.choose ?? 'first',
        chosen: attempts?.chosen ?? null,
        runs: [...runs, { ...info, assurance: null, changes: null }],
      },
    })
    this.append(parentId, 'attempt_started', { attempt, run_id: runId, model_name })
    return runId
  }

  /** Ends a run that another one started, and says so in the log of that. */
  endChild(runId: string, facts: Partial<ChildEnd> & Pick<ChildEnd, 'status'>): void {
    const { parent_run_id, role, usage, final_state, cost_known } = this.runs.get(runId)!.details
    const end: ChildEnd = {
      run_id: runId,
      end_reason: facts.status === 'achieved' ? 'goal_achieved' : 'max_iterations',
      reason: '',
      assurance: null,
      changes: null,
      counts: null,
      usage: { ...usage, cost_usd: final_state.estimated_cost_usd, cost_known },
      ...facts,
    }
    this.finish(runId)
    const { status, end_reason, reason, assurance, changes } = end
    this.set(runId, { status, end_reason, assurance })
    const parent = this.runs.get(parent_run_id!)!.details
    if (role === 'delegate') {
      this.append(parent.run_id, 'delegate_ended', { call_id: 'c1', conflicts: [], ...end })
      return
    }
    const { attempts } = parent
    const ended = { status, reason, assurance, changes }
    const runs = attempts!.runs.map((one) => (one.run_id === runId ? { ...one, ...ended } : one))
    parent.attempts = { ...attempts!, runs }
    const { attempt } = runs.find((one) => one.run_id === runId)!
    this.append(parent.run_id, 'attempt_ended', { attempt, ...end })
  }

  /** Appends an event and wakes the run's readers. */
  append<K extends EventKind>(runId: string, kind: K, payload: EventPayloads[K]): void {
    const run = this.runs.get(runId)!
    const seq = run.events.length + 1
    const event = {
      kind,
      run_id: runId,
      iteration: this.iteration,
      ts: seq / 8,
      seq,
      payload,
    } as unknown as AgentEvent
    run.events.push(event)
    run.encoded.push({ seq, kind, json: JSON.stringify(event) })
    run.details.last_seq = seq
    if (kind === 'run_end') {
      run.details.status = 'achieved'
      run.details.ended_at = '2026-01-01T00:01:00.000Z'
      run.end = 'run_end'
    }
    for (const reader of run.readers) reader.wake()
    for (const observer of this.observers) {
      observer({ details: run.details, events: [event], durationMs: 1 })
    }
  }

  /** Appends `count` log events. */
  log(runId: string, count: number, message = 'hello'): void {
    for (let i = 0; i < count; i++) this.append(runId, 'log', { level: 'info', message })
  }

  /** Appends the last event. */
  finish(runId: string): void {
    this.append(runId, 'run_end', {
      achieved: true,
      iterations: 0,
      total_tokens: 0,
      status: 'achieved',
      end_reason: 'goal_achieved',
      reason: 'done',
      estimated_cost_usd: 0,
      cost_known: true,
    })
  }

  /** Ends all subscriptions of a run for a reason. */
  endReaders(runId: string, end: SubscriptionEnd): void {
    const run = this.runs.get(runId)!
    run.end = end
    for (const reader of run.readers) reader.wake()
  }

  #run(runId: string, caller: Caller): FakeRun {
    const run = this.runs.get(runId)
    if (run === undefined || run.tenant !== (caller?.owner.tenant ?? null))
      throw new UnknownRunError(runId)
    return run
  }

  #enter(...call: unknown[]): void {
    this.calls.push(call.map(withoutSignal))
    const { failure } = this
    this.failure = null
    if (failure !== null) throw failure
    if (this.#closed) throw new EngineClosedError()
  }

  readonly create: ServiceEngine['create'] = async (request, options) => {
    this.#enter('create', request, options)
    if (typeof request['goal'] !== 'string') {
      throw new InvalidRequestError([{ pointer: '/goal', detail: 'is required' }])
    }
    return {
      details: this.runs.get(this.add(options?.caller?.owner.tenant ?? null))!.details,
      created: true,
    }
  }

  readonly list: ServiceEngine['list'] = async (query = {}) => {
    this.#enter('list', query)
    const { tenant = null, createdAfter = -Infinity, status = [], root, parent, role } = query
    const { endReason = [], cwd } = query
    const visible = [...this.runs.values()].filter(
      (run) =>
        run.tenant === tenant &&
        Date.parse(run.details.created_at) > createdAfter * 1_000 &&
        (root === undefined || run.details.root_run_id === root) &&
        (parent === undefined ||
          (run.details.parent_run_id === parent && run.details.role !== 'root')) &&
        (role === undefined || run.details.role === role) &&
        (status.length === 0 || status.includes(run.details.status)) &&
        (endReason.length === 0 || endReason.some((one) => one === run.details.end_reason)) &&
        (cwd === undefined || run.details.cwd === cwd),
    )
    const page = visible.reverse().slice(Number(query.cursor ?? 0))
    const limit = query.limit ?? page.length
    const next = page.length > limit ? String(Number(query.cursor ?? 0) + limit) : null
    return { runs: page.slice(0, limit).map(summaryOf), next }
  }

  readonly get: ServiceEngine['get'] = async (runId, caller) => {
    this.#enter('get', runId, caller)
    return this.#run(runId, caller).details
  }

  readonly resume: ServiceEngine['resume'] = async (runId, answer, caller) => {
    this.#enter('resume', runId, answer, caller)
    this.#run(runId, caller)
    return { run_id: runId, status: 'running', decision: answer.decision, gate_id: 'g1' }
  }

  readonly update: ServiceEngine['update'] = async (runId, update, options) => {
    this.#enter('update', runId, update, options)
    const { details } = this.#run(runId, options?.caller)
    details.may_change = update['may_change'] as string[]
    return details
  }

  readonly abort: ServiceEngine['abort'] = async (runId, caller) => {
    this.#enter('abort', runId, caller)
    const { details } = this.#run(runId, caller)
    const already = details.status === 'aborted'
    if (!already && details.ended_at !== null) throw new RunStateError('ended', 'the run has ended')
    details.status = 'aborted'
    return { details, already }
  }

  readonly retry: ServiceEngine['retry'] = async (runId, caller) => {
    this.#enter('retry', runId, caller)
    const { tenant } = this.#run(runId, caller)
    return { ...this.runs.get(this.add(tenant))!.details, parent_run_id: runId }
  }

  readonly delete: ServiceEngine['delete'] = async (runId, caller) => {
    this.#enter('delete', runId, caller)
    const run = this.#run(runId, caller)
    if (run.details.ended_at === null)
      throw new RunStateError('live', 'the run is live; abort it first')
    this.endReaders(runId, 'deleted')
    this.runs.delete(runId)
  }

  readonly checkFiles: ServiceEngine['checkFiles'] = async (runId, caller) => {
    this.#enter('checkFiles', runId, caller)
    this.#run(runId, caller)
    const files = [{ path: 'test/add.test.js', reason: 'a test file that the report names' }]
    return { files, observed: true, sealed_unavailable: null }
  }

  readonly events: ServiceEngine['events'] = async (runId, { after, limit }, caller) => {
    this.#enter('events', runId)
    return this.#run(runId, caller).events.slice(after, after + limit)
  }

  /** By the `seq` of their event. */
  readonly kept: Map<number, Awaited<ReturnType<ServiceEngine['images']>>> = new Map()

  readonly images: ServiceEngine['images'] = async (runId, seq, caller) => {
    this.#enter('images', runId, seq)
    this.#run(runId, caller)
    return this.kept.get(seq) ?? []
  }

  readonly subscribe: ServiceEngine['subscribe'] = async (runId, options, caller) => {
    this.#enter('subscribe', runId, options, caller)
    const run = this.#run(runId, caller)
    const after = options?.after ?? 0
    if (after > run.events.length) throw new CursorError(after, run.events.length)
    return new FakeSubscription(runId, run, after === -1 ? run.events.length : after)
  }

  readonly workspaces: FakeWorkspaces = new FakeWorkspaces(
    (...call) => this.#enter(...call),
    (runId, caller) => void this.#run(runId, caller),
  )

  readonly fork: ServiceEngine['fork'] = async (runId, request, options) => {
    this.#enter('fork', runId, request, options)
    const { tenant, details } = this.#run(runId, options?.caller)
    const forked_from = { run_id: runId, seq: details.last_seq }
    return { details: { ...this.runs.get(this.add(tenant))!.details, forked_from }, created: true }
  }

  readonly message: ServiceEngine['message'] = async (runId, message, options) => {
    this.#enter('message', runId, message, options)
    const { details } = this.#run(runId, options?.caller)
    if (details.ended_at !== null) throw new RunStateError('ended', 'the run has ended; fork it')
    if (typeof message['text'] !== 'string') {
      throw new InvalidRequestError([{ pointer: '/text', detail: 'is required' }])
    }
    return { message_id: 'm1' }
  }

  readonly models: ServiceEngine['models'] = () => [
    {
      name: 'builtin:repair',
      provider: 'builtin',
      is_language_model: false,
      default: true,
      description: 'a program',
      prices: null,
      context_window: null,
    },
  ]

  /** Answers of the next calls. */
  offered: FolderOffer = { path: null, folders: [], more: 0, left_out: 0 }
  resolved: ResolvedRequest = {
    cwd: '/tmp',
    workspace: 'in_place',
    model_name: 'builtin:repair',
    max_iterations: 20,
    goal: {
      name: 'node-test', command: 'node --test', timeout_ms: 60_000, reporter: 'node-test',
      protected: ['test/**'], allow_test_changes: false, judge_model: null, by_result: false,
    },
  }
  readonly offers: ServiceEngine['offers'] = {
    folders: async (path, caller) => {
      this.#enter('folders', path, caller)
      return this.offered
    },
    resolve: async (request, caller) => {
      this.#enter('resolve', request, caller)
      return this.resolved
    },
  }

  readonly goals: ServiceEngine['goals'] = () => [
    { name: 'node-test', description: 'node --test passes', usage: 'node-test' },
  ]

  readonly counts: ServiceEngine['counts'] = async () => ({
    pending: 0,
    running: this.runs.size,
    awaiting_human: 0,
    achieved: 0,
    failed: 0,
    aborted: 0,
  })

  readonly capacity: ServiceEngine['capacity'] = () => ({ queued: this.queued, maxQueued: 2 })

  readonly usage: ServiceEngine['usage'] = async (tenant) => {
    const own = [...this.runs.values()].filter((run) => run.tenant === tenant)
    return { openRuns: own.filter(({ details }) => details.ended_at === null).length, cost: null }
  }

  readonly check: ServiceEngine['check'] = async () => {
    if (this.broken !== null) throw this.broken
  }

  readonly damage: ServiceEngine['damage'] = () => this.damaged

  readonly observe: ServiceEngine['observe'] = (observer) => {
    this.observers.add(observer)
    return () => this.observers.delete(observer)
  }

  readonly close: ServiceEngine['close'] = async () => {
    this.#closed = true
    for (const runId of this.runs.keys()) this.endReaders(runId, 'shutdown')
  }
}

function summaryOf({ details, problem }: FakeRun): RunSummary {
  const { attempts, final_state } = details
  const { estimated_cost_usd } = final_state
  return { ...details, attempts: attempts?.count ?? 0, estimated_cost_usd, problem }
}

class FakeSubscription implements RunSubscription {
  readonly runId: string
  position: number
  end: SubscriptionEnd | undefined
  readonly #run: FakeRun
  #waiting: (() => void) | undefined

  constructor(runId: string, run: FakeRun, after: number) {
    this.runId = runId
    this.#run = run
    this.position = after
    run.readers.add(this)
  }

  wake(): void {
    this.#waiting?.()
  }

  async next(): Promise<readonly EncodedEvent[] | null> {
    for (;;) {
      if (this.end === 'closed') return null
      const batch = this.#run.encoded.slice(this.position, this.position + 256)
      if (batch.length > 0) {
        this.position += batch.length
        return batch
      }
      if (this.#run.end !== undefined) {
        this.end = this.#run.end
        this.#run.readers.delete(this)
        return null
      }
      await new Promise<void>((resolve) => (this.#waiting = resolve))
    }
  }

  close(): void {
    this.end ??= 'closed'
    this.#run.readers.delete(this)
    this.wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly EncodedEvent[]> {
    for (let batch = await this.next(); batch !== null; batch = await this.next()) yield batch
  }
}
