import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The folder into which `run.mjs` has compiled this tree; undefined in a test file that is run by itself. */
export const compiled: string | undefined = process.env['RUNWRIGHT_COMPILED']

/** How Node runs TypeScript of this repository as it stands. */
export const withLoader: readonly string[] = [
  '--conditions=runwright-source',
  '--import',
  import.meta.resolve('tsx'),
]

/**
 * What is put behind `node` to start a program of this repository, which is named by its path from
 * the root: it is compiled already, or starts with the loader, which takes a second more.
 */
export function programAt(path: string): readonly string[] {
  if (compiled === undefined) return [...withLoader, join(root, path)]
  return [join(compiled, path.replace(/ts$/, 'js'))]
}
