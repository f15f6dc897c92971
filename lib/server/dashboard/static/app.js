/** Starts the page: the list at the side, and in the main part what the address names. */
import { onKeyNeeded, storedKey, storeKey } from './api.js'
import { byId, h } from './dom.js'
import { startForm } from './form.js'
import { askForKey } from './key.js'
import { RunList } from './list.js'
import { runView } from './run.js'

/** @typedef {import('./dom.js').View} View */

onKeyNeeded(askForKey)

const list = new RunList()
const main = byId('main')
const forget = byId('forget')

/** @type {View | null} */
let view = null

/** @returns {View} */
function welcome() {
  return {
    element: h(
      'section',
      { class: 'panel narrow welcome' },
      h('h1', {}, 'Runs'),
      h(
        'p',
        {},
        'A run pursues a goal in a folder, step by step, until the goal is met and checked. ' +
          'Choose one of the list, or start a new one.',
      ),
      h('p', {}, h('a', { class: 'button primary', href: '#/new' }, 'New run')),
    ),
    title: 'Runs',
    close() {},
  }
}

function route() {
  const run = /^#\/runs\/([0-9a-f-]{36})$/.exec(location.hash)?.[1] ?? null
  const isForm = location.hash === '#/new'
  view?.close()
  view = run !== null ? runView(run, () => void list.refresh()) : isForm ? startForm() : welcome()
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
