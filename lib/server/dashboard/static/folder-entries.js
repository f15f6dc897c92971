/** Entries of the timeline about the folder: checkpoints, restores, applied changes. */
import { runAddress } from './address.js'
import { checkpointName, checkpointOf } from './checkpoints.js'
import { button, h } from './dom.js'
import { by, entry, line } from './entry.js'
import { plural, size } from './format.js'
import { conflictsView, foldedPaths, leftOutView } from './path-list.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').Checkpoint} Checkpoint
 */

/**
 * What the user wants to do from the timeline.
 *
 * @typedef {{ name: 'restore', checkpoint: Checkpoint }
 *   | { name: 'fork', at: ForkPoint, from: string }} Action
 * @typedef {'start' | 'end' | { iteration: number }} ForkPoint
 */

/**
 * A button that dispatches `action` to the view of the run.
 *
 * @param {string} label
 * @param {Action} action
 */
export function actionButton(label, action) {
  const act = () =>
    element.dispatchEvent(new CustomEvent('action', { bubbles: true, detail: action }))
  const element = button(label, act, { class: `quiet small ${action.name}` })
  return element
}

/**
 * @param {AgentEvent & { kind: 'checkpoint' }} event
 * @param {string | null} previous the checkpoint before
 */
export function checkpointEntry(event, previous) {
  const { checkpoint_id, files, bytes, left_out, reason } = event.payload
  const checkpoint = checkpointOf(event)
  const name = checkpointName(checkpoint)
  /** @type {ForkPoint | null} */
  const at =
    reason === 'start' || reason === 'end'
      ? reason
      : reason === 'iteration'
        ? { iteration: event.iteration }
        : null
  const changes =
    previous === null || previous === checkpoint_id
      ? null
      : h(
          'a',
          { href: runAddress(event.run_id, 'changes', { from: previous, to: checkpoint_id }) },
          'Changes since the checkpoint before',
        )
  return entry(
    event,
    'checkpoint',
    h(
      'p.what',
      `Checkpoint: ${name.toLowerCase()}`,
      h('span.fact', `${plural(files, 'file')} · ${size(bytes)}`),
    ),
    h(
      'p.entry-actions',
      changes,
      actionButton('Restore', { name: 'restore', checkpoint }),
      at !== null && actionButton('Fork from here', { name: 'fork', at, from: name }),
    ),
    ...leftOutView('Left out', left_out),
  )
}

/** @type {Record<string, [doing: string, done: string]>} */
const OPERATIONS = {
  restore: ['A restore of files began', 'Restored'],
  apply: ['Applying the changes began', 'Applied'],
  merge: ['The changes of a delegate are brought', 'Brought from a delegate'],
}

/** @param {AgentEvent & { kind: 'files_changing' | 'files_changed' }} event */
export function filesEntry(event) {
  const [doing, done] = OPERATIONS[event.payload.operation] ?? ['Files are changing', 'Changed']
  if (event.kind === 'files_changing') {
    const { by: who, conflicts = [] } = event.payload
    return entry(
      event,
      conflicts.length === 0 ? 'plain' : 'warn',
      h('p.what', `${doing}${by(who)}`),
      conflictsView(conflicts),
    )
  }
  const { paths, skipped, more = 0 } = event.payload
  const all = paths.length + more
  return entry(
    event,
    skipped.length === 0 ? 'files-changed' : 'warn',
    h('p.what', `${done}: ${plural(all, 'file')}`),
    paths.length === 0 ? null : foldedPaths('Paths', paths, all),
    skipped.length === 0
      ? null
      : foldedPaths(`Left as they were: ${skipped.length} (changed by others or refused)`, skipped),
  )
}

/** @type {Record<string, string>} */
const DECISIONS = {
  pending: 'Changes are waiting to be applied',
  applied: 'Changes applied',
  discarded: 'Changes discarded',
}

/** @param {AgentEvent & { kind: 'changes_decided' }} event */
export function decisionEntry(event) {
  const { changes, by: who } = event.payload
  return line(event, 'warn', `${DECISIONS[changes] ?? changes}${by(who)}`)
}
