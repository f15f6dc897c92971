/** Applies the changes of an isolated run: shows first what would happen, and what conflicts. */
import { ApiError, call, messageOf } from './api.js'
import { openDialog } from './dialog.js'
import { button, fill, h, problemLine, setText } from './dom.js'
import { plural } from './format.js'
import { foldedPaths, pathList } from './path-list.js'

/**
 * @typedef {import('../types.js').ApplyResult} ApplyResult
 * @typedef {{
 *   readonly paths?: readonly string[],
 *   readonly include_held_back?: boolean,
 * }} ApplyChoice which files; by default, all that are not held back
 */

/**
 * @param {string} runId
 * @param {{
 *   folder: string,
 *   request: ApplyChoice,
 *   done: (result: ApplyResult) => void,
 * }} what `request`: which files
 */
export function applyDialog(runId, { folder, request, done }) {
  const content = h('div.stack', { 'aria-live': 'polite' })
  const problem = problemLine()
  const force = h('input', { type: 'checkbox', onchange: () => update() })
  const forceChoice = h(
    'label.choice.tick',
    { hidden: true },
    force,
    "Overwrite the others' version of these files",
  )
  const count = (/** @type {readonly string[]} */ files) => plural(files.length, 'file')
  const apply = button('Apply', () => void send(false), { class: 'primary', disabled: true })
  /** @type {readonly string[]} */
  let conflicts = []
  let checked = false
  const update = () => {
    forceChoice.hidden = conflicts.length === 0
    apply.disabled = !checked || (conflicts.length > 0 && !force.checked)
    apply.className = force.checked ? 'danger' : 'primary'
  }
  /** @param {readonly string[]} found */
  const conflictView = (found) =>
    found.length > 0 && [
      h('p.notice.bad', `${count(found)} changed in both places, and cannot be merged:`),
      pathList(found),
    ]
  /** @param {boolean} dryRun */
  const send = async (dryRun) => {
    checked = false
    update()
    setText(problem, '')
    try {
      const body = {
        ...request,
        ...(dryRun ? { dry_run: true } : {}),
        ...(!dryRun && force.checked ? { force: true } : {}),
      }
      /** @type {ApplyResult} */
      const result = await call('POST', `api/runs/${runId}/apply`, { body })
      if (!dryRun) {
        dialog.close()
        return done(result)
      }
      conflicts = result.conflicts
      fill(
        content,
        h('p', `${count(result.applied)} in ${folder} would change.`),
        result.merged.length > 0 &&
          foldedPaths(
            `Lines of both sides would be merged in ${count(result.merged)}`,
            result.merged,
          ),
        result.applied.length > 0 && foldedPaths('Paths', result.applied),
        result.held_back.length > 0 &&
          foldedPaths(`Held back: ${count(result.held_back)}`, result.held_back),
        conflictView(conflicts),
      )
      checked = true
    } catch (error) {
      setText(problem, messageOf(error))
      if (error instanceof ApiError && error.problem.code === 'apply_conflict') {
        // They changed after the look.
        conflicts = error.problem.paths ?? []
        fill(content, conflictView(conflicts))
        force.checked = false
        checked = true
      }
    }
    update()
  }
  const dialog = openDialog('Apply the changes', apply, [content, forceChoice, problem])
  fill(content, h('p.hint', 'Looking at what would change…'))
  void send(true)
}
