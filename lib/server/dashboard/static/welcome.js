/** What a run is, for those who have none yet. */
import { h } from './dom.js'

/** What a run consists of, in the order in which one meets it. */
const PARTS = [
  ['Goal', 'What is to be done: a name such as pytest, a command, or your own words.'],
  ['Check', 'A command that proves it, such as your tests. Only its success achieves the goal.'],
  ['Model', 'Decides what to read, change and run in the folder.'],
  ['Iterations', 'A plan, its steps, then the check; again until it passes or a limit is reached.'],
  ['Gates', 'Where you asked for it, the run waits: you approve, reject, edit, or say more.'],
  ['Report', 'Every step is stored as it happens, with its cost, and at the end the net change.'],
]

/** Guides by what they are for; they are files, and no pages of this service. */
const GUIDES = [
  ['docs/goals.md', 'goals and checks'],
  ['docs/models.md', 'models and their keys'],
  ['docs/runs.md', 'runs in your own program'],
  ['docs/rest-api.md', 'this service'],
]

/** @param {HTMLElement} demo */
export function welcome(demo) {
  return h(
    'section.panel.welcome',
    { hidden: true, 'aria-labelledby': 'welcome-title' },
    h('h2', { id: 'welcome-title' }, 'Give it a goal that can be checked'),
    h(
      'p.welcome-lead',
      'A run works in a folder, step by step, until a command proves that its goal is met. ' +
        'You watch it live, and it pauses for your approval where you ask it to.',
    ),
    h(
      'div.welcome-start',
      h('a.button.primary', { href: '#/new' }, 'Start the first run'),
      demo,
    ),
    h('dl.run-parts', PARTS.map(([name, text]) => h('div', h('dt', name), h('dd', text)))),
    h(
      'div.welcome-more',
      h('h3', 'Read on, here and in the package'),
      h(
        'ul.welcome-links',
        h('li', h('a', { href: 'api/openapi.json' }, 'The REST API'), ', as OpenAPI'),
        h('li', h('a', { href: 'api/asyncapi.json' }, 'The event streams'), ', as AsyncAPI'),
        GUIDES.map(([path, what]) => h('li', h('code', path), `: ${what}`)),
      ),
    ),
  )
}
