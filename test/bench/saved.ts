/** The results that are kept beside the benchmarks. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Measured } from './page.js'
import type { Results } from './results.js'
import { suites } from './suites.js'

const folder = fileURLToPath(new URL('results', import.meta.url))

/** Where the results of a benchmark are kept. */
export const resultsPath = (name: string): string => join(folder, `${name}.json`)

/** What is kept, in the order of the suites; a benchmark that was never run is left out. */
export function readSaved(): Measured[] {
  return suites
    .filter(({ name }) => existsSync(resultsPath(name)))
    .map((suite) => ({
      suite,
      results: JSON.parse(readFileSync(resultsPath(suite.name), 'utf8')) as Results,
    }))
}
