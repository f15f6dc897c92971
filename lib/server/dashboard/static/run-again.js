/** Fills the form with the request of an earlier run, to be changed and started as a new one. */
import { control } from './form-fields.js'

/** @typedef {import('../types.js').RunDetails} RunDetails */

const AGAIN = /^#\/new\?from=([0-9a-f-]{36})$/

/**
 * The run whose request an address of the form names; null for none.
 *
 * @param {string} hash
 */
export function againFrom(hash) {
  return AGAIN.exec(hash)?.[1] ?? null
}

/** @param {string} runId */
export function againAddress(runId) {
  return `#/new?from=${runId}`
}

/**
 * What each field of the form has for the request of a run; the model is chosen apart.
 *
 * @param {RunDetails} details
 * @returns {Record<string, string | boolean>}
 */
export function fieldsOf(details) {
  const { approval, attempts, delegation } = details
  const text = (/** @type {string | number | null | undefined} */ value) => String(value ?? '')
  return {
    goal: details.goal,
    cwd: details.cwd,
    check: text(details.check),
    // Rules by tool have no field.
    approval: typeof approval === 'string' ? approval : approval.default,
    workspace: details.workspace,
    instructions: text(details.instructions),
    compaction: details.compaction,
    fallback_models: (details.fallback_models ?? []).join('\n'),
    result_schema:
      details.result_schema === null ? '' : JSON.stringify(details.result_schema, null, 2),
    hitl_enabled: details.hitl_enabled,
    max_iterations: text(details.max_iterations),
    max_total_tokens: text(details.max_total_tokens),
    max_cost_usd: text(details.max_cost_usd),
    max_seconds: text(details.max_seconds),
    max_tool_calls: text(details.max_tool_calls),
    'attempts-count': text(attempts?.count),
    'attempts-choose': attempts === null || attempts.choose === 'first' ? '' : attempts.choose,
    'delegation-depth': text(delegation?.depth),
    'delegation-children': text(delegation?.children),
  }
}

/**
 * @param {HTMLFormElement} form
 * @param {Record<string, string | boolean>} fields
 */
export function fillFields(form, fields) {
  for (const [name, value] of Object.entries(fields)) {
    const input = control(form, name)
    if (typeof value === 'boolean') input.checked = value
    else input.value = value
    // What is set is not hidden.
    if (value !== '' && value !== false && isChanged(input))
      input.closest('details')?.setAttribute('open', '')
  }
}

/** @param {HTMLInputElement} input */
function isChanged(input) {
  if (input instanceof HTMLSelectElement) return input.selectedIndex > 0
  return input.type === 'checkbox' || input.value !== input.defaultValue
}
