/** The boxes of the architecture picture, and the arrows between them, taken from the imports of `lib`. */
import { imports, sourceFiles } from '../helpers/imports.js'

/** One room of the library, or a few that serve the same purpose. */
export interface Box {
  readonly id: string
  readonly title: string
  /** What it is for, in at most two short lines. */
  readonly about: readonly string[]
  /** The file or the folders, relative to `lib`, that it stands for; a folder ends in `/`. */
  readonly holds: readonly string[]
}

function filesOf(folder: string): readonly string[] {
  return sourceFiles.filter((file) => file.startsWith(folder))
}

/** From the top down. A folder named by a later box is no part of an earlier box that contains it. */
export const boxes: readonly Box[] = [
  {
    id: 'server',
    title: 'server, cli/, repair/',
    about: ['handler, REST routes, streams,', 'dashboard; the programs'],
    holds: ['server/', 'cli/', 'repair/'],
  },
  { id: 'ws', title: 'ws/', about: ['WebSocket server', '(RFC 6455)'], holds: ['ws/'] },
  {
    id: 'engine',
    title: 'agent/ engine, config',
    about: ['the front door: RunEngine', 'and its options'],
    holds: ['agent/'],
  },
  {
    id: 'run',
    title: 'agent/run/',
    about: ['drivers, the loop', 'and its steps'],
    holds: ['agent/run/'],
  },
  {
    id: 'request',
    title: 'agent/request, checkpoints',
    about: ['what comes in, checked; contents', 'of folders, and private copies'],
    holds: ['agent/request/', 'agent/checkpoints/', 'agent/isolation/'],
  },
  {
    id: 'log',
    title: 'agent/log/',
    about: ['fold, writer, feeds,', 'subscriptions'],
    holds: ['agent/log/'],
  },
  {
    id: 'models',
    title: 'agent/models/',
    about: ['providers, scripted,', 'replay'],
    holds: ['agent/models/'],
  },
  {
    id: 'stores',
    title: 'agent/stores/',
    about: ['memory, file journal,', 'PostgreSQL'],
    holds: ['agent/stores/'],
  },
  {
    id: 'goals',
    title: 'agent/goals/',
    about: ['checks, reports of', 'runners, protected files'],
    holds: ['agent/goals/'],
  },
  {
    id: 'tools',
    title: 'agent/tools, copies, mcp',
    about: ['what a model may call'],
    holds: ['agent/tools/', 'agent/copies/', 'agent/mcp/'],
  },
  {
    id: 'conversation',
    title: 'agent/conversation, tracing',
    about: ['what a model is sent;', "spans for the host's tracer"],
    holds: ['agent/conversation/', 'agent/tracing/'],
  },
  {
    id: 'workspace',
    title: 'agent/workspace, executors',
    about: ['confined files; commands', 'in process groups'],
    holds: ['agent/workspace/', 'agent/executors/'],
  },
  {
    id: 'http',
    title: 'http/',
    about: ['Client and AsyncClient', 'over HTTP/1.1 and HTTP/2'],
    holds: ['http/'],
  },
  {
    id: 'contracts',
    title: 'agent/ contracts',
    about: ['events, errors and the seams:', 'model, tool, goal, store, executor'],
    holds: [
      'errors',
      'usage',
      'run-details',
      'test-outcomes',
      'model-provider',
      'events',
      'model',
      'tool',
      'tool-command',
      'workspace-copy',
      'goal',
      'store',
      'shared-store',
      'object-store',
      'holdout-store',
      'instructions',
      'plan',
      'tree',
      'run-tree',
      'run-status',
      'checkpoint',
      'offers',
      'check-files',
      'engine-calls',
      'executor',
      'approval',
      'schema',
      'check-schema',
      'output',
      'exhaustion',
      'machine-faults',
      'images',
      'image-part',
    ]
      .map((name) => `agent/${name}.ts`)
      // Types only: what a workspace is. How values are checked is a part of check-schema.
      .concat('agent/workspace/workspace.ts', ...filesOf('agent/json-schema/')),
  },
  {
    id: 'redaction',
    title: 'agent/redaction/',
    about: ['secrets removed from', 'whatever is written'],
    holds: ['agent/redaction/'],
  },
]

/** Not drawn: leaf helpers that everything may use, the namespace index, and what ships for tests. */
export const notDrawn: readonly string[] = ['internal/', 'index.ts', 'agent/testing/']

/** The box of a file, by the longest of the paths that contain it; null for what is not drawn. */
export function boxOf(file: string): Box | null {
  const covers = (path: string): boolean => file === path || file.startsWith(path)
  if (notDrawn.some(covers)) return null
  let best: { readonly box: Box; readonly length: number } | null = null
  for (const box of boxes) {
    for (const path of box.holds) {
      if (covers(path) && path.length > (best?.length ?? 0)) best = { box, length: path.length }
    }
  }
  if (best === null) throw new Error(`lib/${file} is in no box of the architecture picture`)
  return best.box
}

/** Ids of the boxes that each box imports from, dynamic imports included. */
export function arrows(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map(boxes.map(({ id }) => [id, new Set<string>()]))
  for (const { from, target } of imports) {
    if (!target.endsWith('.ts')) continue
    const [source, goal] = [boxOf(from), boxOf(target)]
    if (source !== null && goal !== null && source !== goal) found.get(source.id)!.add(goal.id)
  }
  return found
}

/** Boxes that hold no file: a folder was moved and its box was forgotten. */
export function emptyBoxes(): readonly string[] {
  const used = new Set(sourceFiles.map((file) => boxOf(file)?.id))
  return boxes.filter(({ id }) => !used.has(id)).map(({ id }) => id)
}

/** The level of each box, 0 at the bottom: one above the highest box that it imports from. */
export function levels(): ReadonlyMap<string, number> {
  const edges = arrows()
  const known = new Map<string, number>()
  const visit = (id: string, trail: readonly string[]): number => {
    if (trail.includes(id)) throw new Error(`boxes form a cycle: ${[...trail, id].join(' → ')}`)
    const level = known.get(id)
    if (level !== undefined) return level
    const below = [...edges.get(id)!].map((next) => visit(next, [...trail, id]))
    const own = below.length === 0 ? 0 : Math.max(...below) + 1
    known.set(id, own)
    return own
  }
  for (const { id } of boxes) visit(id, [])
  return known
}

/** The arrows that no longer way implies: these are drawn. */
export function drawnArrows(): readonly (readonly [from: string, to: string])[] {
  const edges = arrows()
  const reaches = (from: string, to: string): boolean =>
    [...edges.get(from)!].some((next) => next === to || reaches(next, to))
  return boxes.flatMap(({ id }) =>
    [...edges.get(id)!]
      .filter((to) => ![...edges.get(id)!].some((via) => via !== to && reaches(via, to)))
      .sort()
      .map((to) => [id, to] as const),
  )
}

