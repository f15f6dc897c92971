/**
 * Draws the architecture picture from the imports of `lib`: `npm run architecture` writes
 * docs/images/architecture.svg, and a test compares the file with what this returns.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../helpers/markdown.js'
import { boxes, drawnArrows, levels, type Box } from './boxes.js'

/** Where the picture is, relative to the repository. */
export const PICTURE = 'docs/images/architecture.svg'

const WIDTH = 1000
const BOX_WIDTH = 216
const BOX_HEIGHT = 62
const ROW = 112
/** Room that an arrow takes where it passes between boxes. */
const PASSAGE = 16
const TOP = 20
/** Boxes of one module share a colour. */
const colours: Readonly<Record<string, string>> = {
  agent: '#e8f0fb',
  http: '#eaf6ea',
  server: '#fbf1e3',
  ws: '#f5eafb',
}

interface Placed {
  readonly box: Box
  /** Centre of the box. */
  readonly x: number
  readonly y: number
}

/** A box, or the point where a longer arrow passes between the boxes of a row. */
interface Stop {
  readonly id: string
  readonly box: Box | null
}

interface Layout {
  readonly placed: ReadonlyMap<string, Placed>
  /** The points of each drawn arrow, from its box to the box it points to. */
  readonly routes: readonly (readonly Point[])[]
}

interface Point {
  readonly x: number
  readonly y: number
}

/** Rows of boxes, one per level; within a row in an order that keeps arrows short. */
function place(): Layout {
  const level = levels()
  const top = Math.max(...level.values())
  const rows: Stop[][] = Array.from({ length: top + 1 }, () => [])
  for (const box of boxes) rows[top - level.get(box.id)!]!.push({ id: box.id, box })
  const above = new Map<string, string[]>()
  const chains = drawnArrows().map(([from, to]) => {
    const chain = [from]
    for (let row = top - level.get(from)! + 1; row < top - level.get(to)!; row++) {
      const stop = { id: `${from}-${to}-${row}`, box: null }
      rows[row]!.push(stop)
      chain.push(stop.id)
    }
    chain.push(to)
    chain.slice(1).forEach((id, n) => above.set(id, [...(above.get(id) ?? []), chain[n]!]))
    return chain
  })
  const points = new Map<string, Point>()
  rows.forEach((row, index) => placeRow(row, TOP + index * ROW + BOX_HEIGHT / 2, above, points))
  const placed = new Map(boxes.map((box) => [box.id, { box, ...points.get(box.id)! }]))
  return { placed, routes: chains.map((chain) => chain.map((id) => points.get(id)!)) }
}

/** Spreads a row over the width, each stop as near as may be to what points at it from above. */
function placeRow(
  row: readonly Stop[],
  y: number,
  above: ReadonlyMap<string, readonly string[]>,
  points: Map<string, Point>,
): void {
  const pull = ({ id }: Stop): number => {
    const xs = (above.get(id) ?? []).map((from) => points.get(from)!.x)
    return xs.length === 0 ? WIDTH : xs.reduce((a, b) => a + b) / xs.length
  }
  const order = row.map((stop) => ({ stop, pull: pull(stop) })).sort((a, b) => a.pull - b.pull)
  const widthOf = ({ box }: Stop): number => (box === null ? PASSAGE : BOX_WIDTH)
  const free = WIDTH - order.reduce((sum, { stop }) => sum + widthOf(stop), 0)
  const gap = Math.max(free / (order.length + 1), 0)
  let left = gap
  for (const { stop } of order) {
    const width = widthOf(stop)
    points.set(stop.id, { x: Math.round(left + width / 2), y })
    left += width + gap
  }
}

function drawBox({ box, x, y }: Placed): string {
  const left = x - BOX_WIDTH / 2
  const fill = colours[box.holds[0]!.split('/')[0]!]!
  const lines = [
    `<rect x="${left}" y="${y - BOX_HEIGHT / 2}" width="${BOX_WIDTH}" height="${BOX_HEIGHT}"` +
      ` rx="5" fill="${fill}" stroke="#56637a"/>`,
    `<text x="${x}" y="${y - 12}" class="title">${box.title}</text>`,
    ...box.about.map((line, n) => `<text x="${x}" y="${y + 6 + n * 15}">${line}</text>`),
  ]
  return lines.join('\n')
}

function drawArrow(route: readonly Point[]): string {
  const half = BOX_HEIGHT / 2
  const last = route.length - 1
  let path = `M${route[0]!.x} ${route[0]!.y + half}`
  for (let n = 1; n <= last; n++) {
    const [from, to] = [route[n - 1]!, route[n]!]
    const [y1, y2] = [from.y + half, to.y - half - (n === last ? 4 : 0)]
    const bend = (y2 - y1) * 0.6
    path += `C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}`
    if (n < last) path += `V${to.y + half}`
  }
  return `<path d="${path}"/>`
}

/** The picture as SVG text. */
export function draw(): string {
  const { placed, routes } = place()
  const height = Math.max(...[...placed.values()].map(({ y }) => y)) + BOX_HEIGHT / 2 + TOP
  const arrows = routes.map(drawArrow)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>The folders of lib and what each imports; arrows that others imply are left out</title>
<style>
text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#333}
.title{font-weight:600;fill:#111}
path{fill:none;stroke:#7c889c;marker-end:url(#tip)}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#7c889c;stroke:none;marker-end:none"/></marker></defs>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
${arrows.join('\n')}
${[...placed.values()].map(drawBox).join('\n')}
</svg>
`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync(join(root, PICTURE), draw())
}
