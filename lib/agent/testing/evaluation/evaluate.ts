/**
 * Lets models attempt tasks, each attempt as a run in a fresh copy of the task's folder.
 *
 * @module
 */
import { constants } from 'node:fs'
import { cp, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeError } from '../../../internal/errors.js'
import { checkOptions, describeValue, type OptionKinds } from '../../../internal/options.js'
import { isJsonObject, type JsonObject } from '../../../internal/json.js'
import { clip, redacted, warn } from '../../output.js'
import type { RunDetails } from '../../run-details.js'
import { isTerminal, type EndReason } from '../../run-status.js'
import { reportOf, type EvaluationAttempt, type EvaluationReport } from './report.js'

/** What models are to do. */
export interface EvaluationTask {
  /** What the report calls it; no two tasks have the same. */
  readonly name: string
  /** Copied for each attempt, with all that is in it. @defaultValue an empty folder */
  readonly folder?: string | undefined
  /** A request to start a run, without `cwd` and `model_name`. */
  readonly request: JsonObject
}

/** The part of a `RunEngine` that an evaluation needs. */
export interface EvaluationEngine {
  /** Starts a run; its rejection is an error of the attempt. */
  create(request: JsonObject): Promise<{ readonly details: RunDetails }>
  /** The run as it is now. */
  get(runId: string): Promise<RunDetails>
  /** Ends a run; a rejection is ignored, as the run may have ended by itself. */
  abort(runId: string): Promise<unknown>
  /** The events of a run until its end. */
  subscribe(runId: string): Promise<AsyncIterable<readonly { readonly kind: string }[]>>
  /** Called once, when no attempt runs any more. */
  close(): Promise<void>
}

/** Options of {@link evaluate}. */
export interface EvaluationOptions {
  readonly tasks: readonly EvaluationTask[]
  /** Names as `model_name` of a request has them. */
  readonly models: readonly string[]
  /** Attempts of each model at each task, 1 to 1000. @defaultValue 1 */
  readonly attempts?: number | undefined
  /**
   * Opens the engine that runs the attempts; its `roots` must contain the folder that it is given,
   * where the copies are. It is closed in the end.
   * @defaultValue one with a `MemoryStore` and the providers of `providersFromEnvironment()`
   */
  readonly engine?: ((folder: string) => EvaluationEngine | Promise<EvaluationEngine>) | undefined
  /** The `k` for which pass@k is estimated, 1 to `attempts`. @defaultValue 1 and `attempts` */
  readonly passAt?: readonly number[] | undefined
  /** Attempts at the same time, 1 to 64. @defaultValue 2 */
  readonly concurrency?: number | undefined
  /** Ends the runs under way, and returns the report of what has ended. */
  readonly signal?: AbortSignal | undefined
  /** Called when an attempt has ended. */
  readonly onAttempt?: ((attempt: EvaluationAttempt) => void) | undefined
}

const OPTIONS: OptionKinds<EvaluationOptions> = {
  tasks: 'array! a list of { name, folder, request }', models: 'array! a list of names of models',
  attempts: 'number', engine: 'function', passAt: 'array',
  concurrency: 'number', signal: 'object', onAttempt: 'function',
}
const TASK: OptionKinds<EvaluationTask> = {
  name: 'string! what the report calls the task', folder: 'string',
  request: 'object! a request to start a run',
}
const MAX_ATTEMPTS = 1_000
const MAX_CONCURRENCY = 64
const MAX_ALL = 100_000
/** Characters of a reason in the report. */
const MAX_REASON = 500

/** Ends of runs that say nothing about the model. */
const BROKEN: ReadonlySet<EndReason | null> = new Set<EndReason | null>([
  'provider_error', 'goal_check_error', 'internal_error', 'recovery_failed', 'human_abort',
  'cancelled', 'gate_timeout', null,
])

interface Job {
  readonly task: EvaluationTask
  readonly model: string
  readonly attempt: number
}

interface Settings {
  readonly tasks: readonly EvaluationTask[]
  readonly models: readonly string[]
  readonly attempts: number
  readonly passAt: readonly number[]
  readonly concurrency: number
}

/** Loaded when it is needed: an evaluation may bring an engine of its own. */
async function openEngine(folder: string): Promise<EvaluationEngine> {
  const { MemoryStore, providersFromEnvironment, RunEngine } = await import('../../index.js')
  const providers = providersFromEnvironment(process.env)
  return await RunEngine.open({ store: new MemoryStore(), roots: [folder], providers })
}

/**
 * Lets each model attempt each task, and reports how often it achieved it, on what that rests, and
 * what it took: see `formatEvaluation()` for a table. All models make their first attempts before
 * any makes its second, so that a report of an aborted evaluation is fair.
 *
 * Runs are without people: one that opens a gate is aborted, and counts as an error. What breaks an
 * attempt is in the report, and does not end the evaluation.
 *
 * @throws TypeError for a bad option; what `engine` throws, and `onAttempt`.
 *
 * @example
 * ```ts
 * const report = await evaluate({
 *   tasks: [{ name: 'cart', folder: 'tasks/cart', request: { goal: 'node-test' } }],
 *   models: ['anthropic:claude-sonnet-5', 'openai:gpt-5'],
 *   attempts: 5,
 * })
 * console.log(formatEvaluation(report))
 * ```
 */
export async function evaluate(options: EvaluationOptions): Promise<EvaluationReport> {
  const settings = resolveSettings(options)
  const { tasks, models, attempts, passAt, concurrency } = settings
  const startedAt = new Date()
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'runwright-evaluation-')))
  try {
    const engine = await (options.engine ?? openEngine)(folder)
    const ended: EvaluationAttempt[] = []
    try {
      await inParallel(jobsOf(settings), concurrency, options.signal, async (job, index) => {
        const cwd = join(folder, String(index))
        const attempt = await runJob(engine, job, cwd, options.signal)
        ended.push(attempt)
        options.onAttempt?.(attempt)
      })
    } finally {
      await engine.close()
    }
    const frame = {
      started_at: startedAt.toISOString(),
      ended_at: new Date().toISOString(),
      tasks: tasks.map(({ name }) => name),
      models,
      attempts,
      pass_at: passAt,
    }
    return reportOf(frame, ended)
  } finally {
    await remove(folder)
  }
}

function jobsOf({ tasks, models, attempts }: Settings): Job[] {
  return Array.from({ length: attempts }, (_, i) =>
    tasks.flatMap((task) => models.map((model) => ({ task, model, attempt: i + 1 }))),
  ).flat()
}

/** Works off a list, so many at a time, until the signal aborts or one rejects. */
async function inParallel(
  jobs: readonly Job[],
  concurrency: number,
  signal: AbortSignal | undefined,
  work: (job: Job, index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  let isOver = false
  const worker = async (): Promise<void> => {
    while (next < jobs.length && !isOver && signal?.aborted !== true) {
      const index = next++
      try {
        await work(jobs[index]!, index)
      } catch (error) {
        isOver = true
        throw error
      }
    }
  }
  const workers = Array.from({ length: Math.min(concurrency, jobs.length) }, worker)
  await Promise.allSettled(workers)
  await Promise.all(workers)
}

async function runJob(
  engine: EvaluationEngine,
  { task, model, attempt }: Job,
  cwd: string,
  signal: AbortSignal | undefined,
): Promise<EvaluationAttempt> {
  const about = { task: task.name, model, attempt }
  try {
    // A run without a workspace has no folder.
    const where = task.request['workspace'] === 'none' ? {} : { cwd }
    if ('cwd' in where) await makeFolder(task.folder, cwd)
    const request = { ...task.request, ...where, model_name: model }
    const { details } = await engine.create(request)
    const { stopped, ended } = await follow(engine, details.run_id, signal)
    return { ...about, ...resultOf(ended, stopped) }
  } catch (error) {
    const outcome = signal?.aborted === true ? 'aborted' : 'error'
    return { ...about, ...NOTHING, outcome, reason: shortened(describeError(error)) }
  } finally {
    await remove(cwd)
  }
}

/** What is known of an attempt without a run. */
const NOTHING = {
  run_id: null, end_reason: null, assurance: null, iterations: 0, tokens: 0, cost_usd: 0,
  seconds: null,
} as const

async function makeFolder(source: string | undefined, folder: string): Promise<void> {
  if (source === undefined) {
    await mkdir(folder)
    return
  }
  const mode = constants.COPYFILE_FICLONE
  await cp(source, folder, { recursive: true, verbatimSymlinks: true, mode })
}

/** Why an attempt was stopped from here. */
type Stop = 'signal' | 'gate' | null

/** Waits for the end of a run; ends it when the signal aborts, and at a gate. */
async function follow(
  engine: EvaluationEngine,
  runId: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly stopped: Stop; readonly ended: RunDetails }> {
  let stopped: Stop = null
  const stop = (why: Stop): void => {
    stopped ??= why
    // A run that has just ended cannot be aborted; that is no matter.
    engine.abort(runId).catch(() => undefined)
  }
  const onAbort = (): void => stop('signal')
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    for await (const events of await engine.subscribe(runId)) {
      if (events.some(({ kind }) => kind === 'human_check_required')) stop('gate')
    }
    return { stopped, ended: await engine.get(runId) }
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

function resultOf(
  details: RunDetails,
  stopped: Stop,
): Omit<EvaluationAttempt, 'task' | 'model' | 'attempt'> {
  const { status, end_reason, error, final_state, started_at, ended_at } = details
  const { goal_reason, estimated_cost_usd, total_tokens } = final_state
  const from = started_at === null || ended_at === null ? null : Date.parse(started_at)
  return {
    outcome: outcomeOf(details, stopped),
    run_id: details.run_id,
    end_reason,
    reason: shortened(reasonOf(stopped, isTerminal(status), error?.message ?? goal_reason)),
    assurance: details.assurance,
    iterations: details.iteration,
    tokens: total_tokens,
    cost_usd: details.cost_known ? estimated_cost_usd : null,
    seconds: from === null ? null : (Date.parse(ended_at!) - from) / 1000,
  }
}

function outcomeOf(
  { status, end_reason }: RunDetails,
  stopped: Stop,
): EvaluationAttempt['outcome'] {
  if (status === 'achieved') return 'achieved'
  if (stopped === 'signal' && (status === 'aborted' || !isTerminal(status))) return 'aborted'
  return BROKEN.has(end_reason) ? 'error' : 'failed'
}

function reasonOf(stopped: Stop, hasEnded: boolean, reason: string): string {
  if (stopped === 'gate') return 'the run waits for a human, which no evaluation has'
  return hasEnded ? reason : 'the engine was closed before the run had ended'
}

function shortened(reason: string): string {
  return clip(redacted(reason), MAX_REASON)
}

/** Removes a folder of this evaluation; what stays behind is no reason to lose the report. */
async function remove(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch (error) {
    warn(`evaluate() could not remove ${folder}: ${describeError(error)}`)
  }
}

function resolveSettings(options: EvaluationOptions): Settings {
  checkOptions(options, OPTIONS, 'evaluate()')
  const { tasks, models, attempts = 1, concurrency = 2 } = options
  for (const [i, task] of tasks.entries()) checkTask(task, `tasks[${i}]`)
  for (const [i, model] of models.entries()) {
    if (typeof model === 'string' && model !== '') continue
    throw new TypeError(`models[${i}] must be the name of a model, got ${describeValue(model)}`)
  }
  checkNames('tasks', tasks.map(({ name }) => name))
  checkNames('models', models)
  checkCount('attempts', attempts, MAX_ATTEMPTS)
  checkCount('concurrency', concurrency, MAX_CONCURRENCY)
  if (tasks.length * models.length * attempts > MAX_ALL) {
    throw new TypeError(`tasks, models and attempts make more than ${MAX_ALL} runs`)
  }
  const passAt = options.passAt ?? (attempts === 1 ? [1] : [1, attempts])
  for (const [i, k] of passAt.entries()) checkCount(`passAt[${i}]`, k, attempts)
  return {
    tasks: [...tasks],
    models: [...models],
    attempts,
    concurrency,
    passAt: [...new Set(passAt)].sort((a, b) => a - b),
  }
}

function checkTask(task: EvaluationTask, at: string): void {
  checkOptions(task, TASK, at)
  if (task.name.trim() === '') throw new TypeError(`${at}.name must say what the task is`)
  if (!isJsonObject(task.request)) throw new TypeError(`${at}.request must be an object`)
  for (const field of ['cwd', 'model_name']) {
    if (!Object.hasOwn(task.request, field)) continue
    throw new TypeError(`${at}.request.${field} must be left out: evaluate() sets it`)
  }
}

function checkNames(what: string, names: readonly string[]): void {
  if (names.length === 0) throw new TypeError(`${what} must not be empty`)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice === undefined) return
  throw new TypeError(`${what} has ${JSON.stringify(twice)} twice`)
}

function checkCount(what: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return
  throw new TypeError(`${what} must be an integer from 1 to ${most}, got ${describeValue(value)}`)
}
