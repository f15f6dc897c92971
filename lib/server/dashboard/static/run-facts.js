/** The numbers and facts of a run. */
import { runAddress } from './address.js'
import { restsOn } from './assurance.js'
import { h, prose } from './dom.js'
import { countsView, fileFacts } from './entries.js'
import { cost, duration, endReason, number, plural } from './format.js'

/**
 * @typedef {import('../types.js').RunDetails} RunDetails
 * @typedef {{
 *   readonly counts: import('../types.js').TestCounts | null,
 *   readonly unsealed: string | null,
 * }} LastCheck of events: the tests of the last check, and why the run has no sealed checks
 */

/**
 * @param {RunDetails} details
 * @param {import('../types.js').TestCounts | null} counts of the last check
 */
export function metersOf(details, counts) {
  const { iteration, max_iterations, usage, final_state, cost_known } = details
  const { max_total_tokens, max_cost_usd, attempts } = details
  const spent = final_state.estimated_cost_usd
  const budget = max_cost_usd === null ? '' : ` · budget $${max_cost_usd}`
  const tokens = `${number(usage.input_tokens)} in · ${number(usage.output_tokens)} out`
  const ended = attempts?.runs.filter(({ status }) => status !== null).length ?? 0
  return [
    attempts === null
      ? meter('Iterations', `${iteration} of ${max_iterations}`, iteration, max_iterations)
      : meter('Attempts', `${ended} of ${attempts.count} ended`, ended, attempts.count),
    meter(
      'Tokens',
      number(final_state.total_tokens),
      final_state.total_tokens,
      max_total_tokens,
      max_total_tokens === null ? tokens : `of ${number(max_total_tokens)} · ${tokens}`,
    ),
    meter(
      'Cost',
      cost(spent, cost_known),
      spent,
      max_cost_usd,
      plural(usage.model_calls, 'model call') + budget,
    ),
    h(
      'div.meter',
      h('p.meter-name', 'Goal check'),
      h('p.meter-value', final_state.goal_achieved ? 'Met' : 'Not met'),
      counts !== null && countsView(counts),
      h('p.meter-more', { dir: 'auto' }, prose(counts === null ? final_state.goal_reason : '')),
    ),
  ]
}

/**
 * @param {RunDetails} details
 * @param {LastCheck} check
 */
export function factsOf(details, { counts, unsealed }) {
  const { started_at, ended_at, created_at } = details
  /** @type {[string, string | Node][]} */
  const facts = [
    ['Model', details.model_name],
    ['Folder', details.workspace === 'none' ? 'none' : details.cwd],
    ['Created', new Date(created_at).toLocaleString()],
  ]
  if (started_at !== null && ended_at !== null)
    facts.push(['Took', duration(Date.parse(ended_at) - Date.parse(started_at))])
  if (details.end_reason !== null) facts.push(['Ended', endReason(details.end_reason)])
  if (details.check !== null) facts.push(['Check', details.check])
  if (details.assurance !== null) {
    const met = details.final_state.goal_achieved
    facts.push([met ? 'Met by' : 'Last check', restsOn(details.assurance, counts)])
  }
  facts.push(...fileFacts(details))
  if (details.may_change !== null) facts.push(['May change', details.may_change.join(', ')])
  if (unsealed !== null) facts.push(['No sealed checks', unsealed])
  if (details.hitl_enabled) facts.push(['Gates', 'after each iteration'])
  if (details.approval !== 'never') facts.push(['Approval', approvalOf(details.approval)])
  if (details.tools) facts.push(['Tools', details.tools.join(', ')])
  facts.push(...treeFacts(details))
  facts.push(['Run', details.run_id])
  return facts.map(([name, value]) => h('div', h('dt', name), h('dd', value)))
}

/**
 * Which calls wait for a human.
 *
 * @param {RunDetails['approval']} approval
 */
function approvalOf(approval) {
  if (typeof approval === 'string') return approval
  const exceptions = Object.entries(approval.tools).map(([tool, when]) => `${tool} ${when}`)
  return [approval.default, ...exceptions].join(', ')
}

/**
 * Its place among the runs that started it, and that it may start.
 *
 * @param {RunDetails} details
 * @returns {[string, Node | string][]}
 */
function treeFacts({ role, parent_run_id, root_run_id, delegation, delegates }) {
  /** @type {[string, Node | string][]} */
  const facts = []
  const link = (/** @type {string} */ runId, /** @type {string} */ text) =>
    h('a', { href: runAddress(runId) }, text)
  if (parent_run_id !== null && role === 'root')
    facts.push(['Retry of', link(parent_run_id, 'an earlier run')])
  else if (parent_run_id !== null) {
    const what = role === 'attempt' ? 'Attempt of' : 'Delegate of'
    facts.push([what, link(parent_run_id, 'its parent')])
    if (root_run_id !== parent_run_id)
      facts.push(['Top of the tree', link(root_run_id, 'its root')])
  }
  if (delegation !== null) {
    const levels = plural(delegation.depth, 'level')
    facts.push(['Delegates', `${delegates} of at most ${delegation.children}, ${levels} deep`])
  } else if (delegates > 0) facts.push(['Delegates', String(delegates)])
  return facts
}

/**
 * What to say about a model that is a program; null for a language model.
 *
 * @param {string} name
 * @param {readonly import('../types.js').Model[]} models
 */
export function aboutProgram(name, models) {
  const model = models.find((each) => each.name === name)
  const isProgram =
    model === undefined ? /^(builtin|scripted|replay):/.test(name) : !model.is_language_model
  if (!isProgram) return null
  return `${name} is a program, not a language model. ${model?.description ?? ''}`
}

/** @type {Record<string, string>} */
const CHANGES = {
  pending: 'Changes wait to be applied',
  applied: 'Changes applied',
  discarded: 'Changes discarded',
}

/**
 * Where the run works, what became of its changes, and what it was forked from.
 *
 * @param {RunDetails} details
 */
export function badgesOf({ role, workspace, changes, forked_from }) {
  const isolated = workspace === 'isolated'
  return [
    role !== 'root' && h('span.badge', role === 'attempt' ? 'Attempt' : 'Delegate'),
    isolated && h('span.badge', 'Private copy'),
    isolated && changes !== null && h('span', { class: `badge ${changes}` }, CHANGES[changes]),
    forked_from != null &&
      h(
        'span.fact',
        'Fork of ',
        h('a', { href: runAddress(forked_from.run_id) }, 'another run'),
        ` at event ${forked_from.seq}`,
      ),
  ]
}

/**
 * @param {string} name
 * @param {string} value
 * @param {number} used
 * @param {number | null} most null draws no bar
 * @param {string} [more]
 */
function meter(name, value, used, most, more = '') {
  const bar =
    most === null
      ? null
      : h('progress', { max: most, value: Math.min(used, most), 'aria-label': `${name} used` })
  return h(
    'div.meter',
    h('p.meter-name', name),
    h('p.meter-value', value),
    bar,
    h('p.meter-more', more),
  )
}
