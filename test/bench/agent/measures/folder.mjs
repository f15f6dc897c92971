import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Creates a scratch folder, which is removed when this process exits. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  process.on('exit', () => rmSync(path, { recursive: true, force: true }))
  return path
}

// The built package: its exports, and the sample runs that are bundled for benchmarks.
export const agent = await import(process.env.RUNWRIGHT_AGENT)
export const { sampleRun } = await import(
  new URL('../samples.js', process.env.RUNWRIGHT_AGENT).href
)
