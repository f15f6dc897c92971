/** Starts the page: the list at the side, and in the main part what the address names. */
import { onKeyNeeded, storedKey, storeKey } from './api.js'
import { byId } from './dom.js'
import { startForm } from './start-form.js'
import { Home } from './home.js'
import { askForKey } from './key-dialog.js'
import { RunList } from './run-list.js'
import { runView } from './run-view.js'

/** @typedef {import('./dom.js').View} View */

onKeyNeeded(askForKey)

/** @type {Home | null} */
let home = null
/** Are there runs? @type {boolean | null} */
let hasRuns = null
const list = new RunList((some) => {
  hasRuns = some ?? hasRuns
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

function route() {
  const run = /^#\/runs\/([0-9a-f-]{36})$/.exec(location.hash)?.[1] ?? null
  const isForm = location.hash === '#/new'
  view?.close()
  home = null
  view = run !== null ? runView(run, () => void list.refresh()) : isForm ? startForm() : openHome()
  document.title = `${view.title} · runwright`
  document.body.dataset['view'] = run !== null ? 'run' : isForm ? 'form' : 'list'
  main.replaceChildren(view.element)
  window.scrollTo({ top: 0 })
  list.select(run)
  void list.refresh()
}

window.addEventListener('hashchange', () => {
  route()
  // A new view is read from its beginning.
  main.focus({ preventScroll: true })
})

forget.hidden = storedKey() === null
forget.addEventListener('click', () => {
  storeKey(null)
  location.reload()
})

route()
