/** Generates `docs/benchmarks.md` and its plots from the saved results. */
import { plotOf, showFigure } from './plot.js'
import type { Results, Row } from './results.js'
import type { Suite } from './suites.js'

/** A benchmark with its saved results. */
export interface Measured {
  readonly suite: Suite
  readonly results: Results
}

const HEAD = `# Benchmarks

Each contender runs in its own process, and contenders take turns, so that load on the machine
affects all of them. Ours is measured as the built package. Figures are medians of the turns with
their range; absolute figures do not carry over from one machine to another, ratios within one table
do. A *bar* is the target that we set ourselves, and a missed bar is shown as missed.

Repeat the benchmarks, all or by name, and regenerate this page:

    npm install --no-save --prefix test/peers
    npm run bench
    npm run bench -- http ws --quick
    npm run bench -- --page-only

\`--quick\` takes fewer and shorter turns, \`--page-only\` generates the page from the figures in
\`test/bench/results\`. The scripts can also be run alone, with more options: see the comment at the
head of each. This page is written by \`test/bench/run.ts\`; edits to it are lost.
`

/** Rows by scenario, in their original order. */
function byScenario(rows: readonly Row[]): Map<string, Row[]> {
  const tables = new Map<string, Row[]>()
  for (const row of rows) tables.set(row.scenario, [...(tables.get(row.scenario) ?? []), row])
  return tables
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

function tableOf(scenario: string, rows: readonly Row[]): string {
  const hasCpu = rows.some(({ cpu }) => cpu !== null)
  const hasRatio = rows.some(({ ratio }) => ratio !== null)
  const head = [
    'contender',
    'median',
    'range',
    ...(hasRatio ? ['ratio'] : []),
    ...(hasCpu ? ['CPU'] : []),
    'bar',
  ]
  const lines = rows.map(({ contender, median, min, max, unit, ratio, cpu, bar, met }) => [
    contender.startsWith('runwright') ? `**${cell(contender)}**` : cell(contender),
    `${showFigure(median)} ${unit}`,
    min === max ? 'one measure' : `${showFigure(min)}–${showFigure(max)}`,
    ...(hasRatio ? [ratio === null ? '' : `${ratio.toFixed(2)}x`] : []),
    ...(hasCpu ? [cpu === null ? '' : `${showFigure(cpu)} us`] : []),
    bar === null ? '' : `${cell(bar)}: ${met === true ? 'met' : '**missed**'}`,
  ])
  const rule = head.map((name, index) => (index === 0 || name === 'bar' ? '---' : '---:'))
  return [
    `### ${scenario}`,
    '',
    ...[head, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`),
  ].join('\n')
}

interface PlotData {
  readonly file: string
  readonly title: string
  readonly rows: readonly Row[]
}

/** The plots of a suite for which there are results. */
function plotsOf({ suite, results }: Measured): PlotData[] {
  return suite.plots.flatMap(({ scenario, file, title }) => {
    const rows = results.rows.filter((row) => scenario.test(row.scenario))
    return rows.length === 0 ? [] : [{ file, title, rows }]
  })
}

function sectionOf(measured: Measured): string {
  const { suite, results } = measured
  const { cpu, cores, memoryGB, platform, pinned } = results.machine
  const versions = Object.entries(results.versions).map(
    ([name, version]) => `${name} ${version.replace(/^v/, '')}`,
  )
  const how = `${results.day ?? 'undated'}${results.mode === 'quick' ? ', quick turns' : ''}`
  const machine = `${cpu}, ${cores} cores${pinned ? ' (pinned)' : ''}, ${memoryGB} GB, ${platform}`
  return [
    `## ${suite.title}`,
    '',
    `\`npm run bench -- ${suite.name}\`, measured on ${how}: ${machine}; ${versions.join(', ')}.`,
    '',
    `*Measured.* ${suite.measured}`,
    '',
    `*Not measured.* ${suite.notMeasured}`,
    '',
    ...plotsOf(measured).flatMap(({ file, title }) => [`![${title}](images/${file})`, '']),
    [...byScenario(results.rows)].map(([scenario, rows]) => tableOf(scenario, rows)).join('\n\n'),
    '',
  ].join('\n')
}

function summaryOf(all: readonly Measured[]): string {
  if (all.length === 0) return 'Nothing has been measured yet.\n'
  const lines = all.map(({ suite, results }) => {
    const judged = results.rows.filter(({ met }) => met !== null)
    const met = judged.filter((row) => row.met === true).length
    const anchor = suite.title.toLowerCase().replaceAll(' ', '-')
    return `| [${suite.title}](#${anchor}) | ${judged.length} | ${met} | ${judged.length - met} |`
  })
  const missed = all.flatMap(({ suite, results }) =>
    results.rows
      .filter(({ met }) => met === false)
      .map(({ scenario, contender, bar, ratio, median, unit }) => {
        const figure =
          ratio === null
            ? `${showFigure(median)} ${unit}`
            : `${ratio.toFixed(2)}x (${showFigure(median)} ${unit})`
        const name = `${suite.title}, *${cell(scenario)}*, ${cell(contender)}`
        return `- ${name}: ${cell(bar ?? '')} is missed, with ${figure}`
      }),
  )
  return [
    '## Bars',
    '',
    '| | rows with a bar | met | missed |',
    '|---|---:|---:|---:|',
    ...lines,
    '',
    ...(missed.length === 0 ? ['None is missed.'] : ['Missed:', '', ...missed]),
    '',
  ].join('\n')
}

/** The text of the page and of its plots, by path from the root. */
export function pageOf(all: readonly Measured[]): ReadonlyMap<string, string> {
  const page = [HEAD, summaryOf(all), ...all.map(sectionOf)].join('\n')
  const plots = all.flatMap(plotsOf)
  return new Map([
    ['docs/benchmarks.md', page],
    ...plots.map(({ file, title, rows }): [string, string] => [
      `docs/images/${file}`,
      plotOf(title, rows),
    ]),
  ])
}
