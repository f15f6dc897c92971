/** The page: the list of runs at the side, and the view that the address names beside it. */
import { onKeyNeeded, storedKey, storeKey } from './api.js'
import { byId, setTitle } from './dom.js'
import { Home } from './home.js'
import { askForKey } from './key-dialog.js'
import { takeKey } from './key-link.js'
import { RunList } from './run-list.js'
import { runView } from './run-view.js'
import { StartForm } from './start-form.js'

/** @typedef {import('./dom.js').View} View */

takeKey()
onKeyNeeded(askForKey)

/** @type {Home | null} */
let home = null
/** Whether there are runs; null while unknown. @type {boolean | null} */
let hasRuns = null
const list = new RunList((found) => {
  hasRuns = found ?? hasRuns
  void home?.update(hasRuns)
})
const main = byId('main')
const forget = byId('forget')

/** @type {View | null} */
let view = null

/** @returns {View} */
function openHome() {
  home = new Home((status) => list.show(status))
  void home.update(hasRuns)
  return home
}

/**
 * The view that the address names.
 *
 * @param {string | null} runId
 * @returns {[name: string, view: View]}
 */
function openView(runId) {
  if (runId !== null) return ['run', runView(runId, () => void list.refresh())]
  return location.hash === '#/new' ? ['form', new StartForm()] : ['list', openHome()]
}

function route() {
  const run = /^#\/runs\/([0-9a-f-]{36})$/.exec(location.hash)?.[1] ?? null
  view?.close()
  home = null
  const [name, opened] = openView(run)
  view = opened
  setTitle(`${view.title} · runwright`)
  document.body.dataset['view'] = name
  main.replaceChildren(view.element)
  window.scrollTo({ top: 0 })
  list.select(run)
  void list.refresh()
}

window.addEventListener('hashchange', () => {
  // A link that was opened in this tab: everything starts afresh with its key.
  if (takeKey()) return location.reload()
  route()
  // Screen readers read a new view from its beginning.
  main.focus({ preventScroll: true })
})

forget.hidden = storedKey() === null
forget.addEventListener('click', () => {
  storeKey(null)
  location.reload()
})

route()
