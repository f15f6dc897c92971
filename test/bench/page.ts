/** Makes `docs/benchmarks.md` and its plots from what the benchmarks have written. */
import { plotOf, showFigure } from './plot.js'
import type { Results, Row } from './results.js'
import type { Suite } from './suites.js'

/** Saved results of a benchmark. */
export interface Measured {
  readonly suite: Suite
  readonly results: Results
}

const HEAD = `# Benchmarks

Each contender has a process of its own, and contenders take turns, so that a busy machine is busy for
all. What is measured of ours is the built package. Figures are medians of the turns with their range;
absolute ones do not carry from one machine to the next, ratios within one table do. A *bar* is what we
hold ourselves to, and a bar that is missed is shown as missed.

Repeat them, all or those whose names you give, and write this page anew:

    npm install --no-save --prefix test/peers
    npm run bench
    npm run bench -- http ws --quick
    npm run bench -- --page-only

\`--quick\` takes fewer and shorter turns, \`--page-only\` makes the page from the figures that
\`test/bench/results\` holds. The scripts can be run alone as well, with more to choose: each says so
at its head. This page is written by \`test/bench/run.ts\`; edits to it are lost.
`

/** Rows by scenario, in the order in which they came. */
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

/** The scenario of each plot that the results hold. */
function plotsOf({
  suite,
  results,
}: Measured): { readonly file: string; readonly title: string; readonly rows: Row[] }[] {
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
  return [
    `## ${suite.title}`,
    '',
    `\`npm run bench -- ${suite.name}\`, measured on ${how}: ${cpu}, ${cores} cores${pinned ? ' (pinned)' : ''}, ` +
      `${memoryGB} GB, ${platform}; ${versions.join(', ')}.`,
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
    const held = results.rows.filter(({ met }) => met !== null)
    const met = held.filter((row) => row.met === true).length
    const anchor = suite.title.toLowerCase().replaceAll(' ', '-')
    return `| [${suite.title}](#${anchor}) | ${held.length} | ${met} | ${held.length - met} |`
  })
  const missed = all.flatMap(({ suite, results }) =>
    results.rows
      .filter(({ met }) => met === false)
      .map(({ scenario, contender, bar, ratio, median, unit }) => {
        const told =
          ratio === null
            ? `${showFigure(median)} ${unit}`
            : `${ratio.toFixed(2)}x (${showFigure(median)} ${unit})`
        return `- ${suite.title}, *${cell(scenario)}*, ${cell(contender)}: ${cell(bar ?? '')} is missed, with ${told}`
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

/** The files of the page, by their path from the root. */
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
