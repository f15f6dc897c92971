/** Dialogs that restore the files of a checkpoint, and that start a fork. */
import { ApiError, call, idempotencyKey, messageOf } from './api.js'
import { openDialog } from './dialog.js'
import { button, fill, h, problemLine, select, setText } from './dom.js'
import { isLive, lineCounts, plural } from './format.js'
import { leftOutView, pathList } from './path-list.js'

/**
 * @typedef {import('../types.js').Model} Model
 * @typedef {import('../types.js').NetChanges} NetChanges
 * @typedef {import('../types.js').RestoreResult} RestoreResult
 * @typedef {import('../types.js').RunDetails} RunDetails
 */

/**
 * Shows what a restore would change, and restores when the user confirms.
 *
 * @param {string} runId
 * @param {{
 *   checkpointId: string,
 *   name: string,
 *   how: 'preview' | 'original' | 'confirmed',
 *   folder: string,
 *   done: (result: RestoreResult) => void,
 * }} what `confirmed` restores at once: to take a restore back; `original`: the checkpoint is of
 *   the `folder` to which changes were applied, and not of the run's copy
 */
export function restoreDialog(runId, { checkpointId, name, how, folder, done }) {
  const content = h('div.stack', { 'aria-live': 'polite' })
  const problem = problemLine()
  let force = false
  const restore = async () => {
    act.disabled = true
    setText(problem, '')
    try {
      const body = { checkpoint_id: checkpointId, ...(force ? { force } : {}) }
      const result = await call('POST', `api/runs/${runId}/restore`, { body })
      dialog.close()
      done(result)
    } catch (error) {
      act.disabled = false
      setText(problem, messageOf(error))
      if (!(error instanceof ApiError) || error.problem.code !== 'workspace_changed') return
      force = true
      fill(
        content,
        h('p.notice.bad', 'Others changed these files. Their changes would be lost:'),
        pathList(error.problem.paths ?? []),
      )
      setText(act, 'Overwrite and restore')
    }
  }
  const act = button('Restore', () => void restore(), { class: 'danger', disabled: true })
  const dialog = openDialog(`Restore the files: ${name}`, act, [content, problem])
  const undoable = h('p.hint', 'A checkpoint is made first, so that you can undo it.')
  const preview = async () => {
    fill(content, h('p.hint', 'Looking at what would change…'))
    /** @type {NetChanges} */
    const found = await call('GET', `api/runs/${runId}/changes?from=now&to=${checkpointId}`)
    const { changes, more, left_out, note } = found
    const count = changes.length + more
    fill(
      content,
      note !== null && h('p.notice', note),
      count === 0 && note === null && h('p', 'The files are as they were: nothing would change.'),
      count > 0 && [
        h('p', `${plural(count, 'file')} would change:`),
        pathList(changes.map(changeText), count),
        undoable,
      ],
      leftOutView('Left as it is', left_out),
    )
    act.disabled = count === 0
  }
  if (how === 'confirmed') return void restore()
  if (how === 'preview') return void preview().catch((error) => setText(problem, messageOf(error)))
  fill(
    content,
    h('p', `This is a checkpoint of ${folder}, and not of the private copy of the run.`),
    h('p', 'Files there that were applied become what they were before. There is no preview.'),
    undoable,
  )
  act.disabled = false
}

/** @type {Record<string, string>} */
const WOULD = { added: 'comes back', modified: 'changes', deleted: 'goes', renamed: 'is renamed' }

/** @param {import('../types.js').NetChange} change */
function changeText(change) {
  const { path, old_path, status, binary } = change
  const name = old_path === null ? path : `${old_path} → ${path}`
  return `${name} ${WOULD[status] ?? status}${binary ? '' : ` ${lineCounts(change)}`}`
}

/**
 * @param {RunDetails} details of the source
 * @param {{
 *   at: import('./folder-entries.js').ForkPoint,
 *   from: string,
 *   message: string,
 *   models: readonly Model[],
 *   done: (fork: RunDetails) => void,
 * }} what
 */
export function forkDialog(details, { at, from, message, models, done }) {
  const key = idempotencyKey()
  const live = isLive(details.status)
  const text = h('textarea', { id: 'fork-message', rows: 3, maxLength: 32_768, value: message })
  const model = select({ id: 'fork-model' }, [
    ['', `As before (${details.model_name})`],
    ...models.map(({ name }) => /** @type {const} */ ([name, name])),
  ])
  const most = h('input', {
    id: 'fork-iterations',
    type: 'number',
    min: '1',
    max: '1000',
    value: String(details.max_iterations),
  })
  const place = select({ id: 'fork-place' }, [
    ['', 'In a private copy'],
    ['in_place', live ? 'In the folder (after the end of this run)' : 'In the folder'],
  ])
  const inPlace = /** @type {HTMLOptionElement} */ (place.options[1])
  inPlace.disabled = live
  // Without checkpoints there is nothing of which a copy could be made.
  const hasFolder = details.workspace !== 'none'
  inPlace.selected = hasFolder && !live && details.checkpoint_id === null
  const problem = problemLine()
  const submit = h('button.primary', { type: 'submit' }, 'Start the fork')
  const start = async () => {
    submit.disabled = true
    setText(problem, '')
    try {
      const body = {
        at,
        ...(text.value.trim() === '' ? {} : { message: text.value }),
        ...(model.value === '' ? {} : { model_name: model.value }),
        ...(most.value === '' ? {} : { max_iterations: Number(most.value) }),
        ...(place.value === '' ? {} : { workspace: place.value }),
      }
      const headers = { 'Idempotency-Key': key }
      const fork = await call('POST', `api/runs/${details.run_id}/fork`, { body, headers })
      dialog.close()
      done(fork)
    } catch (error) {
      setText(problem, messageOf(error))
      submit.disabled = false
    }
  }
  const field = (/** @type {string} */ label, /** @type {HTMLElement} */ control) =>
    h('div.field', h('label', { for: control.id }, label), control)
  const content = [
    h('p.hint', 'A new run goes on from here. This one stays as it is.'),
    field('Go on with… (optional)', text),
    h('div.row', field('Model', model), field('Max iterations', most)),
    ...(hasFolder ? [field('Where', place)] : []),
    problem,
  ]
  const dialog = openDialog(`Fork: ${from}`, submit, content, () => void start())
}
