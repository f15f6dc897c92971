/**
 * What the canaries found, from files in the folder `canaries` of the private folder.
 * Lines are JSON arrays:
 * - `[nonce, "begin", subject]`: written before code of the workspace runs; the subject is a file
 *   of tests, or `*` for a process that runs several
 * - `[nonce, "end", subject, [name…], [passed, failed], [[what, file]…]]`: assertions that did not
 *   fail; the tests that the process has seen to pass and to fail, null where it counts none: of
 *   one such process among others, any number of tests may have passed; and who has done what to
 *   the runner, null for an unknown file
 *
 * A process that finds its file changed by somebody else writes another, which is invalid.
 *
 * @module
 */
import { join } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import { readFolder } from '../../workspace/read-folder.js'
import { readRegularFile } from '../small-file.js'
import { shorten } from './outcomes.js'
import { textLines } from './text-lines.js'
import type { CanaryReport, Deed, ReportPlace, ReportProblem } from './types.js'

const MAX_FILE_BYTES = 256 * 1024
const MAX_FILES = 100_000
const MAX_BROKEN = 100
const MAX_DEEDS = 1_000

/** The folder for these files, in the private folder. */
export const CANARY_FOLDER = 'canaries'

/** Reads what canaries wrote; a report without any is one of a runner that has none. */
export async function readCanaries({
  folder,
  nonce,
}: Pick<ReportPlace, 'folder' | 'nonce'>): Promise<CanaryReport | ReportProblem> {
  const entries = await readFolder(join(folder, CANARY_FOLDER), MAX_FILES)
  if (entries.length >= MAX_FILES) return 'too_large'
  const broken = new Set<string>()
  const unfinished = new Set<string>()
  const deeds = new Map<string, Deed>()
  let ended = 0
  const seen = { passed: 0, failed: 0 }
  let isCounted = false
  const work = new LongWork()
  for (const { name } of entries) {
    if (!name.endsWith('.jsonl')) continue
    if (work.isDue) await work.next()
    const content = await readRegularFile(join(folder, CANARY_FOLDER, name), MAX_FILE_BYTES)
    if (typeof content === 'string') return content
    let open: string | null = null
    for (const line of textLines(content.toString('utf8'))) {
      if (line === '') continue
      const parsed = parse(line)
      if (!Array.isArray(parsed) || parsed[0] !== nonce) return 'invalid'
      const [, kind, subject, found, counts, done = []] = parsed as unknown[]
      if (typeof subject !== 'string') return 'invalid'
      if (kind === 'begin' && open === null) open = shorten(subject)
      else if (kind === 'end' && open !== null && isNames(found) && isDeeds(done)) {
        open = null
        ended += 1
        for (const one of found) if (broken.size < MAX_BROKEN) broken.add(shorten(one))
        for (const [what, file] of done) {
          if (deeds.size < MAX_DEEDS) deeds.set(`${what} ${file}`, { what: shorten(what), file })
        }
        if (isCounts(counts)) {
          isCounted = true
          seen.passed += counts[0]
          seen.failed += counts[1]
        } else seen.passed = Infinity
      } else return 'invalid'
    }
    if (open !== null) unfinished.add(open)
  }
  return {
    ended, unfinished: [...unfinished], broken: [...broken], seen: isCounted ? seen : null,
    deeds: [...deeds.values()],
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((part) => typeof part === 'string')
}

function isCounts(value: unknown): value is readonly [passed: number, failed: number] {
  return Array.isArray(value) && value.length === 2 && value.every(Number.isSafeInteger)
}

function isDeeds(value: unknown): value is readonly [what: string, file: string | null][] {
  return Array.isArray(value) && value.every(
    (one) => Array.isArray(one) && typeof one[0] === 'string' &&
      (one[1] === null || typeof one[1] === 'string'),
  )
}
