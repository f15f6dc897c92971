/** Tabs (WAI-ARIA): arrow keys, Home and End go from tab to tab, and show its panel at once. */
import { button, h } from './dom.js'

/** @template {string} K */
export class Tabs {
  element = h('div.tabs', {
    role: 'tablist',
    'aria-label': 'Views of this run',
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event),
  })
  #tabs
  #chosen

  /**
   * @param {readonly { name: K, label: string | Node, panel: HTMLElement }[]} tabs
   * @param {(name: K) => void} chosen called when the user chooses a tab
   */
  constructor(tabs, chosen) {
    this.#chosen = chosen
    this.#tabs = tabs.map(({ name, label, panel }) => {
      const tab = button(label, () => this.#choose(name), {
        id: `tab-${name}`,
        role: 'tab',
        'aria-controls': `panel-${name}`,
      })
      panel.id = `panel-${name}`
      panel.setAttribute('role', 'tabpanel')
      panel.setAttribute('aria-labelledby', tab.id)
      panel.tabIndex = 0
      this.element.append(tab)
      return { name, tab, panel }
    })
  }

  /** @param {K} name */
  show(name) {
    for (const { name: each, tab, panel } of this.#tabs) {
      const selected = each === name
      tab.setAttribute('aria-selected', String(selected))
      tab.tabIndex = selected ? 0 : -1
      panel.hidden = !selected
    }
  }

  /**
   * Leaves a tab out, or offers it again. The one that is shown stays.
   *
   * @param {K} name
   * @param {boolean} offered
   */
  offer(name, offered) {
    const found = this.#tabs.find(({ name: each }) => each === name)
    if (found !== undefined) found.tab.hidden = !offered && found.panel.hidden
  }

  /** @param {K} name */
  focus(name) {
    this.#tabs.find(({ name: each }) => each === name)?.tab.focus()
  }

  /** @param {K} name */
  #choose(name) {
    this.show(name)
    this.#chosen(name)
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const tabs = this.#tabs.filter(({ tab }) => !tab.hidden)
    const count = tabs.length
    const at = tabs.findIndex(({ tab }) => tab === event.target)
    /** @type {Record<string, number>} */
    const targets = {
      ArrowRight: (at + 1) % count,
      ArrowLeft: (at + count - 1) % count,
      Home: 0,
      End: count - 1,
    }
    const target = tabs[targets[event.key] ?? -1]
    if (target === undefined) return
    event.preventDefault()
    target.tab.focus()
    this.#choose(target.name)
  }
}
