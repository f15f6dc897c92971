/** The import graph of `lib`, read from the sources: what the layer rules and the architecture picture rest on. */
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { root } from './markdown.js'

/** One import or re-export. Paths are relative to `lib`; a target outside it stands as written. */
export interface Import {
  readonly from: string
  readonly target: string
  /** True for `import('…')`: loaded when that line runs, not with the importing file. */
  readonly dynamic: boolean
}

/** Files of `lib` by path, each with the files it imports, types included, dynamic imports apart. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>

const lib = join(root, 'lib')

/** Every TypeScript file of `lib`, declarations of the dashboard apart. */
export const sourceFiles: readonly string[] = readdirSync(lib, {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
  .map((name) => normalize(name))
  .sort()

/** Every import of every file of `lib`. */
export const imports: readonly Import[] = sourceFiles.flatMap(importsOf)

/** The graph of {@link imports}. */
export const graph: ImportGraph = new Map(
  sourceFiles.map((file) => {
    const own = imports.filter(({ from, dynamic }) => from === file && !dynamic)
    return [file, [...new Set(own.map(({ target }) => target))].filter((it) => it.endsWith('.ts'))]
  }),
)

function importsOf(file: string): Import[] {
  const text = readFileSync(join(lib, file), 'utf8').replaceAll(/\/\*[^]*?\*\//g, '')
  const pattern =
    /^[ \t]*(?:import|export)\s+(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm
  return [...text.matchAll(pattern)].map(([, fixed, dynamic]) => {
    const specifier = fixed ?? dynamic ?? ''
    const target = specifier.startsWith('.')
      ? normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts')
      : specifier
    return { from: file, target, dynamic: fixed === undefined }
  })
}

/** The first import cycle found, from a file back to itself; null when there is none. */
export function findCycle(graph: ImportGraph): readonly string[] | null {
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): readonly string[] | null => {
    const start = trail.indexOf(file)
    if (start !== -1) return [...trail.slice(start), file]
    if (done.has(file)) return null
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...trail, file])
      if (cycle !== null) return cycle
    }
    done.add(file)
    return null
  }
  for (const file of graph.keys()) {
    const cycle = visit(file, [])
    if (cycle !== null) return cycle
  }
  return null
}
