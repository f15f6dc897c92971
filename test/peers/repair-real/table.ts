/** The figures of a half, as text. */
import type { Missed, TrialResult } from './trial.js'

const WANTED = 0.6
const MOST_TRIALS = 40
const MOST_OVERFIT = 0.1

export interface Summary {
  readonly bugs: number
  readonly repaired: number
  readonly overfit: number
  readonly medianTrials: number
  readonly medianSeconds: number
  readonly touched: number
  readonly leftovers: number
  readonly kept: number
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  const half = Math.floor(sorted.length / 2)
  if (sorted.length === 0) return 0
  return sorted.length % 2 > 0 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

export function summarized(results: readonly TrialResult[]): Summary {
  const repaired = results.filter(({ quality }) => quality !== null)
  const count = (test: (one: TrialResult) => boolean): number => results.filter(test).length
  return {
    bugs: results.length,
    repaired: repaired.length,
    overfit: count(({ quality }) => quality === 'overfit'),
    medianTrials: median(repaired.map(({ trials }) => trials)),
    medianSeconds: median(repaired.map(({ seconds }) => seconds)),
    touched: count(({ touched }) => touched.length > 0),
    leftovers: count(({ leftovers }) => leftovers.length > 0),
    kept: count(({ kept }) => kept.length > 0),
  }
}

/** Which bars the figures are below; the share of overfits is of the repaired. */
export function belowBars(summary: Summary): string[] {
  const { bugs, repaired, overfit, medianTrials, touched, leftovers } = summary
  const bars: readonly (readonly [boolean, string])[] = [
    [repaired >= WANTED * bugs, `${percent(repaired, bugs)} repaired, wanted ${100 * WANTED} %`],
    [medianTrials <= MOST_TRIALS, `a median of ${medianTrials} trials, at most ${MOST_TRIALS}`],
    [overfit <= MOST_OVERFIT * repaired, `${percent(overfit, repaired)} overfit`],
    [touched === 0, `${touched} runs changed files that are no sources`],
    [leftovers === 0, `${leftovers} runs left patches that help nothing`],
  ]
  return bars.filter(([holds]) => !holds).map(([, text]) => text)
}

const percent = (part: number, whole: number): string =>
  `${whole === 0 ? 0 : Math.round((100 * part) / whole)} %`

/** Groups in the order of their first results. */
function grouped(
  results: readonly TrialResult[], by: (one: TrialResult) => string,
): [string, TrialResult[]][] {
  const groups = new Map<string, TrialResult[]>()
  for (const one of results) groups.set(by(one), [...(groups.get(by(one)) ?? []), one])
  return [...groups]
}

function tableOf(title: string, groups: readonly [string, TrialResult[]][]): string {
  const rows = groups.map(([name, results]) => {
    const { bugs, repaired, medianTrials, medianSeconds } = summarized(results)
    const of = (quality: string): string =>
      String(results.filter((one) => one.quality === quality).length)
    return [
      name, String(bugs), String(repaired), percent(repaired, bugs), of('equal'), of('equivalent'),
      of('overfit'), String(medianTrials), medianSeconds.toFixed(1),
    ]
  })
  const head = [
    title, 'bugs', 'repaired', 'share', 'equal', 'equivalent', 'overfit', 'trials', 'seconds',
  ]
  const widths = head.map((_, at) => Math.max(...[head, ...rows].map((row) => row[at]!.length)))
  return [head, ...rows]
    .map((row) => row.map((cell, at) =>
      at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)).join('  '))
    .join('\n')
}

const where = ({ bug }: TrialResult): string =>
  `${bug.package} ${bug.file}:${bug.line}, ${bug.operator}`

/** Short enough for a line. */
const short = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}

const changeOf = ({ bug }: TrialResult): string =>
  `${short(bug.original)} → ${short(bug.replacement)}`

export function lineFor(one: TrialResult): string {
  const verdict = one.quality === null ? `missed (${one.missed})` : `repaired (${one.quality})`
  const marks = [
    one.touched.length > 0 ? ` TOUCHED ${one.touched.join(', ')}` : '',
    one.leftovers.length > 0 ? ` LEFT ${one.leftovers.join(', ')}` : '',
    one.kept.length > 0 ? ' kept a patch that helps' : '',
  ].join('')
  const figures = `${one.trials} trials, ${one.seconds.toFixed(1)} s`
  return `${verdict.padEnd(23)} ${where(one)} (${figures})${marks}`
}

export function formatted(results: readonly TrialResult[]): string {
  const summary = summarized(results)
  const missed = results.filter(({ quality }) => quality === null)
  const reasons = grouped(missed, ({ missed: reason }) => reason as Missed)
    .map(([reason, list]) => {
      const tried = list.filter(({ triedOriginal }) => triedOriginal).length
      return `  ${reason}: ${list.length}${tried > 0 ? `, ${tried} with the right patch tried` : ''}`
    })
  const lists = [
    ['Missed:', missed.map((one) =>
      `  ${one.missed}: ${where(one)}: ${changeOf(one)}` +
      ` (${one.trials} trials${one.triedOriginal ? ', the right patch among them' : ''})` +
      (one.missed === 'gave up' || one.missed === 'time' ? '' : ` ${short(one.said)}`))],
    ['Overfit:', results.filter(({ quality }) => quality === 'overfit')
      .map((one) => `  ${where(one)}: ${changeOf(one)}`)],
  ] as const
  return [
    tableOf('package', grouped(results, ({ bug }) => bug.package)),
    tableOf('operator', grouped(results, ({ bug }) => `${bug.by}: ${bug.operator}`).sort()),
    tableOf('runner', grouped(results, ({ runner }) => runner)),
    tableOf('all', [['all', [...results]]]),
    ['Why bugs were missed:', ...reasons].join('\n'),
    ...lists.filter(([, lines]) => lines.length > 0).map((list) => list.flat().join('\n')),
    `${summary.repaired} of ${summary.bugs} bugs repaired ` +
      `(${percent(summary.repaired, summary.bugs)}), ${summary.overfit} overfit, ` +
      `${summary.touched} runs touched tests, ${summary.leftovers} left patches that help ` +
      `nothing, ${summary.kept} kept some that help`,
  ].join('\n\n')
}
