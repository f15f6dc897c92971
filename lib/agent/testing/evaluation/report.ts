/**
 * Pure: the report of an evaluation, made of its attempts.
 *
 * 1. Only attempts that ended by themselves count, as achieved or failed. Those that something
 *    broke say nothing about the model, and are counted apart.
 * 2. The order is that of the tasks, the models and the attempts, whenever each of them ended.
 *
 * @module
 */
import type { Assurance } from '../../goal.js'
import type { EndReason } from '../../run-status.js'
import { meanInterval, passInterval, type Estimate } from './intervals.js'

/** One attempt of a model at a task. */
export interface EvaluationAttempt {
  readonly task: string
  readonly model: string
  /** Counts from 1. */
  readonly attempt: number
  /**
   * `failed`: the run ended without its goal; `error`: it could not run, or something other than
   * the model ended it; `aborted`: the evaluation was aborted while it ran.
   */
  readonly outcome: 'achieved' | 'failed' | 'error' | 'aborted'
  /** Null when there was no run, or it has not ended. */
  readonly run_id: string | null
  readonly end_reason: EndReason | null
  /** What the last check said, or what broke. */
  readonly reason: string
  readonly assurance: Assurance | null
  readonly iterations: number
  readonly tokens: number
  /** US dollars; null when a price is unknown or tokens were estimated. */
  readonly cost_usd: number | null
  /** From the start of the run to its end; null when it did not start. */
  readonly seconds: number | null
}

/** How likely it is that one of `k` attempts achieves a task, with an interval of 95 %. */
export interface PassEstimate extends Estimate {
  readonly k: number
}

/** What achieved runs rest on. */
export interface AssuranceCount {
  /** Null: the run says nothing about it. */
  readonly by: Assurance['by'] | null
  readonly sealed: boolean
  readonly runs: number
}

/** What attempts have in common: those of a model at one task, or at all. */
export interface EvaluationSummary {
  readonly achieved: number
  readonly failed: number
  readonly errors: number
  readonly aborted: number
  /** One for each `k`, the mean of the tasks; null unless each has `k` attempts that count. */
  readonly pass: readonly (PassEstimate | null)[]
  readonly assurance: readonly AssuranceCount[]
  /** Means of the attempts that count; null without any. */
  readonly mean: {
    readonly tokens: number
    /** Null when the cost of one of them is unknown. */
    readonly cost_usd: number | null
    readonly seconds: number
  } | null
}

/** One model at one task. */
export interface EvaluationCell extends EvaluationSummary {
  readonly task: string
  readonly model: string
  readonly attempts: readonly EvaluationAttempt[]
}

/** One model at all tasks. */
export interface EvaluationTotal extends EvaluationSummary {
  readonly model: string
  /** Of all attempts, also those that do not count. */
  readonly spent: { readonly tokens: number; readonly cost_usd: number | null }
}

/** What `evaluate()` returns; it is JSON. */
export interface EvaluationReport {
  /** Of this form; fields may be added to it. */
  readonly version: 1
  /** ISO 8601 UTC. */
  readonly started_at: string
  readonly ended_at: string
  /** False when it was aborted before each attempt had ended. */
  readonly complete: boolean
  readonly tasks: readonly string[]
  readonly models: readonly string[]
  /** Attempts of each model at each task. */
  readonly attempts: number
  /** The `k` of each `pass`. */
  readonly pass_at: readonly number[]
  readonly cells: readonly EvaluationCell[]
  readonly totals: readonly EvaluationTotal[]
}

/** What was asked for, and when it was done. */
export type EvaluationFrame = Pick<
  EvaluationReport,
  'started_at' | 'ended_at' | 'tasks' | 'models' | 'attempts' | 'pass_at'
>

export function reportOf(
  frame: EvaluationFrame,
  all: readonly EvaluationAttempt[],
): EvaluationReport {
  const { tasks, models, attempts, pass_at } = frame
  const cells = tasks.flatMap((task) =>
    models.map((model): EvaluationCell => {
      const own = all
        .filter((one) => one.task === task && one.model === model)
        .sort((a, b) => a.attempt - b.attempt)
      return { task, model, ...summaryOf([own], pass_at), attempts: own }
    }),
  )
  const totals = models.map((model): EvaluationTotal => {
    const groups = cells.filter((cell) => cell.model === model).map((cell) => cell.attempts)
    const own = groups.flat()
    const spent = { tokens: sum(own.map(({ tokens }) => tokens)), cost_usd: costOf(own) }
    return { model, ...summaryOf(groups, pass_at), spent }
  })
  const ended = all.filter(({ outcome }) => outcome !== 'aborted').length
  const complete = ended === tasks.length * models.length * attempts
  return { version: 1, ...frame, complete, cells, totals }
}

/** @param groups - the attempts, by task. */
function summaryOf(
  groups: readonly (readonly EvaluationAttempt[])[],
  passAt: readonly number[],
): EvaluationSummary {
  const all = groups.flat()
  const count = (outcome: EvaluationAttempt['outcome']): number =>
    all.filter((one) => one.outcome === outcome).length
  const counting = all.filter(counts)
  return {
    achieved: count('achieved'),
    failed: count('failed'),
    errors: count('error'),
    aborted: count('aborted'),
    pass: passAt.map((k) => passOf(groups, k)),
    assurance: assuranceOf(all),
    mean:
      counting.length === 0
        ? null
        : {
            tokens: sum(counting.map(({ tokens }) => tokens)) / counting.length,
            cost_usd: divided(costOf(counting), counting.length),
            seconds: sum(counting.map(({ seconds }) => seconds ?? 0)) / counting.length,
          },
  }
}

function counts({ outcome }: EvaluationAttempt): boolean {
  return outcome === 'achieved' || outcome === 'failed'
}

/** Null when a task has too few attempts: a mean of the others could not be compared. */
function passOf(
  groups: readonly (readonly EvaluationAttempt[])[],
  k: number,
): PassEstimate | null {
  const parts = groups.flatMap((group) => {
    const n = group.filter(counts).length
    const achieved = group.filter(({ outcome }) => outcome === 'achieved').length
    return n < k ? [] : [passInterval(n, achieved, k)]
  })
  return parts.length < groups.length ? null : { k, ...meanInterval(parts) }
}

/** Grouped, the most frequent first. */
function assuranceOf(all: readonly EvaluationAttempt[]): readonly AssuranceCount[] {
  const groups = new Map<string, AssuranceCount>()
  for (const { outcome, assurance } of all) {
    if (outcome !== 'achieved') continue
    const { by, sealed } = assurance ?? { by: null, sealed: false }
    const key = `${by} ${sealed}`
    groups.set(key, { by, sealed, runs: (groups.get(key)?.runs ?? 0) + 1 })
  }
  return [...groups].sort(([a, one], [b, other]) => other.runs - one.runs || (a < b ? -1 : 1))
    .map(([, group]) => group)
}

function costOf(all: readonly EvaluationAttempt[]): number | null {
  const costs = all.map(({ cost_usd }) => cost_usd)
  return costs.includes(null) ? null : sum(costs as readonly number[])
}

function divided(total: number | null, by: number): number | null {
  return total === null ? null : total / by
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
