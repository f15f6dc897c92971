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
const BOX_WIDTH = 206
const BOX_HEIGHT = 62
const ROW = 112
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

/** Rows of boxes, one per level; within a row in an order that keeps arrows short. */
function place(): ReadonlyMap<string, Placed> {
  const byLevel = groupByLevel()
  const placed = new Map<string, Placed>()
  const top = Math.max(...byLevel.keys())
  const arrows = drawnArrows()
  for (let level = top; level >= 0; level--) {
    const row = byLevel.get(level) ?? []
    const pull = (box: Box): number => {
      const above = arrows.filter(([, to]) => to === box.id).map(([from]) => placed.get(from)!.x)
      return above.length === 0 ? WIDTH / 2 : above.reduce((a, b) => a + b) / above.length
    }
    const order = row.map((box) => ({ box, pull: pull(box) })).sort((a, b) => a.pull - b.pull)
    order.forEach(({ box, pull: wanted }, index) => {
      const even = (WIDTH * (index + 0.5)) / order.length
      const x = order.length === 1 ? wanted : even
      const half = BOX_WIDTH / 2 + 8
      const inside = Math.round(Math.min(Math.max(x, half), WIDTH - half))
      placed.set(box.id, { box, x: inside, y: TOP + (top - level) * ROW + BOX_HEIGHT / 2 })
    })
  }
  return placed
}

function groupByLevel(): Map<number, Box[]> {
  const rows = new Map<number, Box[]>()
  const level = levels()
  for (const box of boxes) {
    const row = rows.get(level.get(box.id)!) ?? []
    rows.set(level.get(box.id)!, [...row, box])
  }
  return rows
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

function drawArrow(from: Placed, to: Placed): string {
  const [y1, y2] = [from.y + BOX_HEIGHT / 2, to.y - BOX_HEIGHT / 2 - 4]
  const bend = Math.max(30, (y2 - y1) / 3)
  return `<path d="M${from.x} ${y1}C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}"/>`
}

/** The picture as SVG text. */
export function draw(): string {
  const placed = place()
  const height = Math.max(...[...placed.values()].map(({ y }) => y)) + BOX_HEIGHT / 2 + TOP
  const arrows = drawnArrows().map(([from, to]) => drawArrow(placed.get(from)!, placed.get(to)!))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>The folders of lib and what each imports; arrows that others imply are left out</title>
<style>
text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#333}
.title{font-weight:600;font-size:13px;fill:#111}
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
