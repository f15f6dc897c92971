/** Pure: the patches that a call of `try_patches` tries, and what came of each. */
import { plural } from './numbers.js'

/**
 * `outcome` is empty while it is not known.
 *
 * @typedef {{ readonly path: string, readonly old: string, readonly now: string }} Edit
 * @typedef {{ readonly edits: readonly Edit[], readonly note: string,
 *   readonly outcome: string, readonly passed: boolean }} TriedPatch
 * @typedef {{ readonly patches: readonly TriedPatch[], readonly what: string,
 *   readonly summary: string }} Tried `what` the call does
 */

/**
 * Null for a call of another tool, and for arguments that are none of its.
 *
 * @param {{ readonly tool: string, readonly args: unknown }} call
 * @param {string | null} output null before there is one
 * @returns {Tried | null}
 */
export function triedBy({ tool, args }, output) {
  if (tool !== 'try_patches') return null
  const given = field(args, 'patches')
  if (!Array.isArray(given)) return null
  const outcomes = outcomesOf(output ?? '')
  const patches = given.map((patch, i) => {
    const edits = field(patch, 'edits')
    const outcome = outcomes[i] ?? ''
    return {
      edits: Array.isArray(edits) ? edits.map(editOf) : [],
      note: textOf(patch, 'note'),
      outcome,
      passed: outcome.startsWith('exit code 0 '),
    }
  })
  const count = plural(given.length, 'patch', 'patches')
  const passed = patches.filter((patch) => patch.passed).length
  return {
    patches,
    what: given.length === 0 ? 'runs a command in a copy' : `tries ${count}`,
    summary: outcomes.length === 0 ? count : `${count}: ${passed} passed`,
  }
}

/** @param {unknown} edit @returns {Edit} */
function editOf(edit) {
  return {
    path: textOf(edit, 'path'),
    old: textOf(edit, 'old_text'),
    now: textOf(edit, 'new_text'),
  }
}

/**
 * What the result says of each patch: a line such as `Patch 3: exit code 1 (190 ms)`, with the
 * indented lines below it.
 *
 * @param {string} output
 */
function outcomesOf(output) {
  /** @type {string[]} */
  const outcomes = []
  let isOfPatch = false
  for (const line of output.split('\n')) {
    if (line.startsWith('  ')) {
      if (isOfPatch) outcomes.push(`${outcomes.pop()}\n${line.slice(2)}`)
      continue
    }
    const start = `Patch ${outcomes.length + 1}: `
    isOfPatch = line.startsWith(start)
    if (isOfPatch) outcomes.push(line.slice(start.length))
  }
  return outcomes
}

/** @param {unknown} value @param {string} name */
function textOf(value, name) {
  const found = field(value, name)
  return typeof found === 'string' ? found : ''
}

/** @param {unknown} value @param {string} name @returns {unknown} */
function field(value, name) {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
}
