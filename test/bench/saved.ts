/** The results saved beside the benchmarks. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Measured } from './page.js'
import type { Results } from './results.js'
import { suites } from './suites.js'

const folder = fileURLToPath(new URL('results', import.meta.url))

/** The file with the results of a benchmark. */
export const resultsPath = (name: string): string => join(folder, `${name}.json`)

/** All saved results, in the order of the suites. */
export function readSaved(): Measured[] {
  return suites
    .filter(({ name }) => existsSync(resultsPath(name)))
    .map((suite) => ({
      suite,
      results: JSON.parse(readFileSync(resultsPath(suite.name), 'utf8')) as Results,
    }))
}
