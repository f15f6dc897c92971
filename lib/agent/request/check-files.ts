import type { CheckFiles } from '../check-files.js'
import type { GoalSpec } from '../goal.js'
import { readLog, type RecordReader } from '../log/read-log.js'
import { redactor } from '../redaction/redactor.js'

/** Records read from the store at once. */
const PAGE = 1_000

/** What belongs to the check of a run, by its log: all that later checks compare. */
export async function checkFilesOf(store: RecordReader, runId: string): Promise<CheckFiles> {
  const files = new Map<string, string>()
  let goal: GoalSpec | undefined
  let start: { readonly unavailable: string | null } | undefined
  let observed = false
  for await (const records of readLog(store, runId, PAGE)) {
    for (const record of records) {
      if (record.kind === 'run_created') {
        goal = record.private?.goal
        const fork = record.private?.fork
        start = fork?.seal?.start
        for (const [path, reason] of Object.entries(fork?.seal?.reasons ?? {}))
          files.set(path, reason)
      } else if (record.kind === 'run_started' || record.kind === 'setup_ended') {
        for (const path of Object.keys(record.private?.baseline?.files ?? {}))
          if (!files.has(path)) files.set(path, BY_PATTERN)
      } else if (record.kind === 'goal_check') {
        const { baseline, files: checked, seal, in_place: inPlace } = record.private ?? {}
        if (baseline !== undefined) {
          // They were found before it was known what an earlier run had changed.
          files.clear()
          for (const path of Object.keys(baseline.files)) files.set(path, BY_PATTERN)
        }
        observed ||= checked !== undefined && checked.verified !== null
        // The first copy may have been checked later.
        start = seal?.start ?? inPlace ?? start
        for (const [path, reason] of Object.entries(seal?.reasons ?? {})) files.set(path, reason)
      }
    }
  }
  const isFree = goal === undefined || goal.allow_test_changes || goal.command === ''
  const list = isFree ? [] : [...files].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    files: list.map(([path, reason]) => ({ path: redactor.text(path), reason })),
    observed,
    sealed_unavailable: start === undefined ? 'no sealed check was made' : start.unavailable,
  }
}

const BY_PATTERN = 'named like a test, its configuration, or a part of the runner'
