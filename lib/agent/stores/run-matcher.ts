/** Whether a run meets the conditions of a query. @module */
import type { RunQuery } from '../store.js'
import { metadataKeys } from './list-keys.js'
import type { IndexedRun } from './indexed-run.js'

/** Tests a run against every condition of a query except time and cursor. */
export function matcher(query: RunQuery): (run: IndexedRun) => boolean {
  const { tenant, goal, modelName, root, parent, role, cwd, metadata = {} } = query
  const statuses = query.status === undefined || query.status.length === 0 ? null : query.status
  const { endReason = [] } = query
  const keys = metadataKeys(metadata)
  const words = searchWords(query).map(ignoringCase)
  return (run) =>
    (tenant === undefined || run.tenant === tenant) &&
    (statuses === null || statuses.includes(run.status)) &&
    (goal === undefined || run.goal === goal) &&
    (modelName === undefined || run.modelName === modelName) &&
    (root === undefined || (run.child?.root ?? run.runId) === root) &&
    (parent === undefined || run.child?.parent === parent) &&
    (role === undefined || run.child === null) &&
    (cwd === undefined || run.cwd === cwd) &&
    (endReason.length === 0 || (run.endReason !== null && endReason.includes(run.endReason))) &&
    keys.every((key) => run.metadata?.includes(key)) &&
    (words.length === 0 || containsAll(run, words))
}

/** The words that a query searches for, in lower case. */
export function searchWords({ search = '' }: RunQuery): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean)
}

function containsAll({ goal, modelName, runId }: IndexedRun, words: readonly RegExp[]): boolean {
  return words.every((word) => word.test(goal) || word.test(modelName) || word.test(runId))
}

/** Matches a word in any case, without a lower-case copy of every goal. */
function ignoringCase(word: string): RegExp {
  return new RegExp(word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')
}
