/** Bar charts as SVG, for light and dark pages. */
import type { Row } from './results.js'

const WIDTH = 720
const LABEL = 210
const VALUE = 150
const LINE = 26
const TOP = 44

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** A figure rounded to about three digits. */
export function showFigure(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString('en').replaceAll(',', ' ')
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)
}

/** One bar per row, with its median as text and its range as a thin line. */
export function plotOf(title: string, rows: readonly Row[]): string {
  const most = Math.max(...rows.map(({ max }) => max))
  const scale = (WIDTH - LABEL - VALUE) / most
  const unit = rows[0]?.unit ?? ''
  const better = unit === '/s' ? 'more is better' : 'less is better'
  const height = TOP + rows.length * LINE + 10
  const bars = rows.flatMap(({ contender, median, min, max }, index) => {
    const y = TOP + index * LINE
    const middle = y + 9
    const kind = contender.startsWith('runwright') ? 'ours' : 'theirs'
    const width = Math.max(1, median * scale).toFixed(1)
    const [from, to] = [LABEL + min * scale, LABEL + max * scale]
    const end = (to + 8).toFixed(1)
    return [
      `  <text class="label" x="${LABEL - 10}" y="${y + 14}">${escape(contender)}</text>`,
      `  <rect class="${kind}" x="${LABEL}" y="${y}" width="${width}" height="18" rx="2"/>`,
      `  <path class="range" d="M${from.toFixed(1)} ${middle}H${to.toFixed(1)}"/>`,
      `  <text x="${end}" y="${y + 14}">${showFigure(median)} ${escape(unit)}</text>`,
    ]
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" ` +
      `width="${WIDTH}" height="${height}" role="img" aria-label="${escape(title)}">`,
    '  <style>',
    '    text { font: 13px system-ui, sans-serif; fill: #1f2328 }',
    '    .title { font-weight: 600; font-size: 15px }',
    '    .label { text-anchor: end }',
    '    .ours { fill: #1a7f6b }',
    '    .theirs { fill: #9aa4b2 }',
    '    .range { stroke: #1f2328; stroke-width: 1.5 }',
    '    @media (prefers-color-scheme: dark) {',
    '      text { fill: #e6edf3 }',
    '      .ours { fill: #3fb99e }',
    '      .theirs { fill: #5b6573 }',
    '      .range { stroke: #e6edf3 }',
    '    }',
    '  </style>',
    `  <text class="title" x="10" y="24">${escape(title)}: ${better}</text>`,
    ...bars,
    '</svg>',
    '',
  ].join('\n')
}
