import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A scratch folder that is removed when this process ends. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  process.on('exit', () => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Our modules, as they were built: what is exported, and what only stores use. */
export const agent = await import(process.env.RUNWRIGHT_AGENT)
export const { sampleRun } = await import(
  new URL('../samples.js', process.env.RUNWRIGHT_AGENT).href
)
