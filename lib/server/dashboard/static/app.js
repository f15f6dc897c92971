/** The page: the list of runs at the side, and the view that the address names beside it. */
import { readAddress } from './address.js'
import { onKeyGiven, onKeyNeeded, storedKey, storeKey } from './api.js'
import { closeDialogs } from './dialog.js'
import { byId, setTitle } from './dom.js'
import { Home } from './home.js'
import { askForKey } from './key-dialog.js'
import { takeKey } from './key-link.js'
import { bindKeys, showKeys } from './keys.js'
import { Notices } from './notices.js'
import { RunList } from './run-list.js'
import { filterFrom } from './run-query.js'
import { RunView } from './run-view.js'
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
  if (run !== null) run.view.noticed(list.lastSeq(run.id))
})
const notices = new Notices()
const main = byId('main')
const forget = byId('forget')

/** @type {View | null} */
let view = null

/** @returns {View} */
function openHome() {
  home = new Home(notices.element)
  void home.update(hasRuns)
  return home
}

/** The run that is shown. @type {{ id: string, view: RunView } | null} */
let run = null

/** @returns {boolean} false when the address names another part of the same view */
function route() {
  const address = readAddress(location.hash)
  if (run !== null && address?.runId === run.id) {
    run.view.navigate(address)
    return false
  }
  // Another filter of the list that is shown.
  const filter = filterFrom(location.hash)
  if (filter !== null) list.show(filter)
  if (filter !== null && home !== null) {
    void list.refresh()
    return false
  }
  closeDialogs()
  view?.close()
  home = null
  run = null
  if (address !== null) {
    const opened = new RunView(address, () => void list.refresh())
    run = { id: address.runId, view: opened }
    view = opened
  } else view = /^#\/new(?:\?|$)/.test(location.hash) ? new StartForm() : openHome()
  setTitle(`${view.title} · runwright`)
  document.body.dataset['view'] =
    address !== null ? 'run' : view instanceof StartForm ? 'form' : 'list'
  main.replaceChildren(view.element)
  window.scrollTo({ top: 0 })
  list.select(address?.runId ?? null)
  notices.see(address?.runId ?? null)
  void list.refresh()
  return true
}

window.addEventListener('hashchange', () => {
  // A link that was opened in this tab: everything starts afresh with its key.
  if (takeKey()) return location.reload()
  // Screen readers read a new view from its beginning.
  if (route()) main.focus({ preventScroll: true })
})

// The address names the view, so the link must not change it.
document.querySelector('.skip')?.addEventListener('click', (event) => {
  event.preventDefault()
  main.focus()
})

byId('keys').addEventListener('click', showKeys)
bindKeys('Everywhere', [{ key: '?', label: 'Show the keys', run: showKeys }])

onKeyGiven(() => run?.view.keyGiven())
forget.hidden = storedKey() === null
forget.addEventListener('click', () => {
  storeKey(null)
  location.reload()
})

route()
