import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The folder with the output of `run.mjs`; undefined if a test file is run without it. */
export const compiled: string | undefined = process.env['RUNWRIGHT_COMPILED']

/** The arguments with which Node runs the TypeScript sources. */
export const withLoader: readonly string[] = [
  '--conditions=runwright-source',
  '--import',
  import.meta.resolve('tsx'),
]

/**
 * The arguments with which Node runs a program of this repository, given by its path from the root:
 * the compiled one, or the source with the loader, which takes a second more.
 */
export function programAt(path: string): readonly string[] {
  if (compiled === undefined) return [...withLoader, join(root, path)]
  return [join(compiled, path.replace(/ts$/, 'js'))]
}
