/** An event as an entry of the timeline. */
import { restsOn } from './assurance.js'
import { changeView } from './diff.js'
import { h, programOutput, setText } from './dom.js'
import { by, entry, labelOf, line, paragraph } from './entry.js'
import { checkpointEntry, decisionEntry, filesEntry } from './folder-entries.js'
import { duration, endReason, lineCounts, number, plural, statusLabel } from './format.js'
import { imagesView } from './images.js'
import { outputView } from './output-view.js'
import { patchList } from './patch-list.js'
import { countIn } from './search.js'
import { chosenBy, ROLE_WORDS, treeEntry } from './tree-entries.js'
import { triedBy } from './tried-patches.js'
import { clipped } from './visible.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('../types.js').TestCounts} TestCounts
 */

/** Characters of a tool's output shown before the user asks for more. */
const SHOWN_OUTPUT = 4_000
/** Characters of an output that is drawn before it is opened. */
const SHORT_OUTPUT = 8_000

/**
 * @template {AgentEvent['kind']} K
 * @typedef {Extract<AgentEvent, { kind: K }>} EventOf
 */

/**
 * What has become of a tool call or a message since its event; of a checkpoint, the one before.
 *
 * @typedef {{
 *   started?: boolean,
 *   result?: EventOf<'tool_result'>,
 *   heard?: boolean,
 *   previous?: string | null,
 * }} Progress `heard` false: it came too late
 */

/**
 * True when an event is shown as an entry of its own.
 *
 * @param {AgentEvent} event
 */
export function isShown(event) {
  if (event.kind === 'llm_usage')
    return event.payload.input_tokens + event.payload.output_tokens > 0
  if (event.kind === 'model_turn')
    return event.payload.text.trim() !== '' && event.payload.gives_result !== true
  return labelOf(event) !== null
}

/**
 * The entries of kinds that show more than their label.
 *
 * @type {{
 *   readonly [K in AgentEvent['kind']]?: (event: EventOf<K>, progress: Progress) => HTMLElement
 * }}
 */
const VIEWS = {
  attempt_started: treeEntry,
  attempt_ended: treeEntry,
  attempt_chosen: treeEntry,
  delegate_started: treeEntry,
  delegate_ended: treeEntry,
  run_created: createdEntry,
  setup_started: (event) => line(event, 'plain', 'Setup begins', event.payload.command),
  setup_ended: setupEntry,
  run_recovered(event) {
    const { attempt } = event.payload
    return line(event, 'warn', `Resumed after a restart of the service (attempt ${attempt})`)
  },
  abort_requested: (event) => line(event, 'warn', `Abort requested${by(event.payload.by)}`),
  llm_usage: usageLine,
  model_switched(event) {
    const { from, to, message } = event.payload
    return line(event, 'warn', `${to} takes over from ${from}`, message)
  },
  model_turn: (event) => entry(event, 'said', h('p.what', 'Model'), paragraph(event.payload.text)),
  reasoning: reasoningEntry,
  tool_call: toolEntry,
  checkpoint: (event, { previous = null }) => checkpointEntry(event, previous),
  user_message: (event, { heard }) => messageEntry(event, heard),
  files_changing: filesEntry,
  files_changed: filesEntry,
  changes_decided: decisionEntry,
  conversation_compacted: summaryEntry,
  holdout_evaluation: holdoutLine,
  result: resultEntry,
  goal_check: checkEntry,
  human_check_required: (event) =>
    line(event, 'gate', 'Waiting for a human', event.payload.summary),
  human_check_response: answerEntry,
  run_end: endEntry,
  error: errorEntry,
  log: (event) =>
    line(event, event.payload.level === 'info' ? 'plain' : 'warn', event.payload.message),
}

/**
 * The entry of an event.
 *
 * @param {AgentEvent} event for which `isShown()` is true
 * @param {Progress} progress
 * @returns {HTMLElement}
 */
export function entryView(event, progress) {
  const view = /** @type {((event: AgentEvent, progress: Progress) => HTMLElement) | undefined} */ (
    VIEWS[event.kind]
  )
  return view?.(event, progress) ?? line(event, 'plain', labelOf(event) ?? event.kind)
}

/** @param {EventOf<'run_created'>} event */
function createdEntry(event) {
  return entry(
    event,
    'plain',
    h('p.what', createdText(event)),
    ...(event.payload.messages ?? []).map(({ text, by: who }) =>
      h('div', h('p.what', `Message${by(who)}`), paragraph(text)),
    ),
  )
}

/** @param {EventOf<'run_created'>} event */
function createdText({ payload: { attempts, role } }) {
  if (attempts !== undefined)
    return `Run created: ${plural(attempts.count, 'attempt')}, ${chosenBy(attempts.choose)}`
  return role === undefined ? 'Run created' : `Run created, as ${ROLE_WORDS[role]}`
}

/**
 * @param {EventOf<'user_message'>} event
 * @param {boolean} [heard]
 */
function messageEntry(event, heard) {
  const { text, deliver, by: who } = event.payload
  const waiting =
    deliver === 'next_iteration' ? 'waits for the next iteration' : 'waits for the next model call'
  const state = heard === undefined ? waiting : heard ? 'heard' : 'came too late to be heard'
  return entry(
    event,
    'said message',
    h('p.what', `Message${by(who)}`, h('span.fact', state)),
    paragraph(text),
  )
}

/** @param {EventOf<'reasoning'>} event */
function reasoningEntry(event) {
  return entry(
    event,
    'thought',
    h('details', h('summary', 'Reasoning'), paragraph(event.payload.text)),
  )
}

/**
 * An answer, with what runs in place of what the model asked for.
 *
 * @param {EventOf<'human_check_response'>} event
 */
function answerEntry(event) {
  const { decision, decided_by, feedback, attempt, edits = {} } = event.payload
  const answer = attempt === undefined ? decision : `attempt ${attempt}`
  const list = Object.entries(edits).map(([id, edit]) =>
    h('pre.output', { tabIndex: 0 }, `${id}: ${JSON.stringify(edit, null, 2)}`),
  )
  return entry(
    event,
    'gate',
    h('p.what', `Answered: ${answer}${by(decided_by)}`),
    feedback === undefined || feedback === '' ? null : paragraph(feedback),
    ...list,
  )
}

/**
 * What stands in place of the beginning of the conversation.
 *
 * @param {EventOf<'conversation_compacted'>} event
 */
function summaryEntry(event) {
  const { turns, summary, problem = '' } = event.payload
  const what = `The first ${plural(turns, 'turn')} of the conversation no longer fit`
  if (summary === null)
    return line(event, 'warn', `${what}, and were left out without a summary`, problem)
  const details = h('details', h('summary', 'Summary, by the model'), paragraph(summary))
  return entry(event, 'thought', h('p.what', what), details)
}

const WHO = { worker: 'Model', judge: 'Judge', summary: 'Summary' }

/** @param {EventOf<'llm_usage'>} event */
function usageLine(event) {
  const { input_tokens, output_tokens, cost_usd, purpose } = event.payload
  const price = cost_usd === null ? '' : ` · $${cost_usd.toFixed(4)}`
  const who = WHO[purpose]
  return line(
    event,
    'usage',
    `${who}: ${number(input_tokens)} tokens in, ${number(output_tokens)} out${price}`,
  )
}

/** @param {EventOf<'holdout_evaluation'>} event */
function holdoutLine(event) {
  const { number: count, of: most } = event.payload
  return line(event, 'plain', `Held-out tests: evaluation ${count} of at most ${most}`)
}

/** @param {EventOf<'setup_ended'>} event */
function setupEntry(event) {
  const { duration_ms, exit_code, output } = event.payload
  const isDone = exit_code === 0
  return entry(
    event,
    isDone ? 'plain' : 'warn',
    h(
      'p.what',
      isDone ? 'Setup is done' : `Setup failed with exit code ${exit_code}`,
      h('span.fact', duration(duration_ms)),
    ),
    output === ''
      ? null
      : h(
          'pre.output',
          { tabIndex: 0, dir: 'auto' },
          programOutput(clipped(output, SHOWN_OUTPUT)),
        ),
  )
}

/** @param {EventOf<'result'>} event */
function resultEntry(event) {
  const { attempt, problem, result } = event.payload
  const what = problem === null ? 'Result' : 'Not a valid result'
  return entry(
    event,
    problem === null ? 'check good' : 'check',
    h('p.what', what, h('span.fact', `answer ${attempt} of at most 3`)),
    problem === null
      ? h(
          'pre.output',
          { tabIndex: 0, dir: 'auto' },
          programOutput(clipped(JSON.stringify(result, null, 2), SHOWN_OUTPUT)),
        )
      : paragraph(problem),
  )
}

/** @param {EventOf<'goal_check'>} event */
function checkEntry(event) {
  const { achieved, reason, counts, cached, duration_ms, assurance } = event.payload
  const { sealed_unavailable: unsealed } = event.payload
  const facts = cached ? 'unchanged since the last check' : duration(duration_ms)
  return entry(
    event,
    achieved ? 'check good' : 'check',
    h('p.what', achieved ? 'Goal met' : 'Goal not met', h('span.fact', facts)),
    paragraph(reason),
    counts === null ? null : countsView(counts),
    assurance === undefined
      ? null
      : h('p.hint', `${achieved ? 'Met by' : 'Checked by'}: ${restsOn(assurance, counts)}`),
    ...fileFacts(event.payload).map(([name, paths]) => paragraph(`${name}: ${paths}`)),
    unsealed === undefined ? null : paragraph(`No sealed checks: ${unsealed}`),
  )
}

/**
 * What a verdict says of files of the run.
 *
 * @param {{
 *   readonly held_back?: readonly string[] | null,
 *   readonly changed_tests?: readonly string[] | null,
 *   readonly allowed?: readonly string[] | null,
 * }} verdict
 * @returns {[string, string][]} names of lists that have files, and the files
 */
export function fileFacts({ held_back, changed_tests, allowed }) {
  return /** @type {const} */ ([
    ['Held back', held_back],
    ['Edited tests', changed_tests],
    ['Allowed to change', allowed],
  ]).flatMap(([name, paths]) => (paths?.length ? [[name, paths.join(', ')]] : []))
}

/** @param {TestCounts} counts */
export function countsView(counts) {
  const { total, passed, failed, skipped } = counts
  const text = `${passed} of ${plural(total, 'test')} pass`
  const parts = /** @type {const} */ ([
    ['passed', passed],
    ['failed', failed],
    ['skipped', skipped],
  ])
  const bar = h('span.counts-bar', { 'aria-hidden': 'true' })
  for (const [kind, count] of parts) {
    if (count === 0) continue
    const part = h('span', { class: kind })
    part.style.flexGrow = String(count)
    bar.append(part)
  }
  const rest = [failed > 0 ? `${failed} fail` : '', skipped > 0 ? `${skipped} skipped` : ''].filter(
    Boolean,
  )
  return h('p.counts', bar, h('span', [text, ...rest].join(' · ')))
}

/** @param {EventOf<'run_end'>} event */
function endEntry(event) {
  const { status, end_reason, reason, iterations, total_tokens, changes } = event.payload
  const facts = [plural(iterations, 'iteration'), plural(total_tokens, 'token')]
  if (changes !== undefined)
    facts.push(`${plural(changes.files, 'file')} changed`, lineCounts(changes))
  return entry(
    event,
    `end ${status}`,
    h(
      'p.what',
      `${statusLabel(status)}: ${endReason(end_reason)}`,
      h('span.fact', facts.join(' · ')),
    ),
    reason === '' ? null : paragraph(reason),
  )
}

/** @param {EventOf<'error'>} event */
function errorEntry(event) {
  const { message, traceback } = event.payload
  return entry(
    event,
    'bad',
    h('p.what', 'Error'),
    paragraph(message),
    traceback === ''
      ? null
      : h(
          'details',
          h('summary', 'Stack trace'),
          h('pre.output', { tabIndex: 0 }, traceback),
        ),
  )
}

/**
 * A tool call, with its result once there is one.
 *
 * @param {EventOf<'tool_call'>} event
 * @param {Progress} progress
 */
function toolEntry(event, { started = false, result }) {
  const { tool, args } = event.payload
  const state = h('span.state', started ? 'running…' : 'requested')
  const tried = triedBy(event.payload, result?.payload.output ?? null)
  const isListed = tried !== null && tried.patches.length > 0
  const parts = isListed ? [patchList(tried, result !== undefined)] : []
  let tone = started ? 'busy' : ''
  if (result !== undefined) {
    const { output, exit_code, duration_ms, changes = [], images = [] } = result.payload
    tone = exit_code === 0 ? 'good' : 'bad'
    setText(state, `${exitWord(exit_code)} · ${duration(duration_ms)}`)
    state.className = `state ${tone}`
    parts.push(...changes.map(changeView))
    if (images.length > 0) parts.push(imagesView(event.run_id, result.seq, images))
    if (output !== '') parts.push(outputBox(output, result.seq))
  }
  return entry(
    event,
    `tool ${tone}`,
    h(
      'p.what',
      { 'data-key': 'what' },
      h('span.tool-name', tool),
      tried !== null && h('span.fact', tried.what),
      h('code.args', argumentsLine(args)),
      state,
    ),
    parts.length > 1 ? h('div.tool-result', parts) : (parts[0] ?? null),
  )
}

/** @type {Record<string, string>} */
const EXIT_WORDS = {
  0: 'done',
  124: 'timed out',
  126: 'refused',
  127: 'no such tool',
  130: 'stopped',
  '-1': 'outcome unknown',
}

/** @param {number} code */
function exitWord(code) {
  return EXIT_WORDS[code] ?? `exit ${code}`
}

/**
 * A long one is drawn when it is opened, or told to by the event `show`: there may be many, and
 * most stay folded. A short one can be found by the browser.
 *
 * @param {string} output
 * @param {number} seq of its event
 */
function outputBox(output, seq) {
  const show = () => {
    if (box.childElementCount === 1) box.append(outputView(output, `output-${seq}.txt`))
  }
  const ontoggle = () => box.open && show()
  const summary = h('summary', `Output · ${plural(countIn(output, '\n') + 1, 'line')}`)
  const box = h('details.output-box', { ontoggle, onshow: show }, summary)
  if (output.length <= SHORT_OUTPUT) show()
  return box
}

/**
 * The most telling argument of a call, or all of them, on one line.
 *
 * @param {unknown} args
 */
function argumentsLine(args) {
  if (typeof args !== 'object' || args === null) return ''
  const values = Object.entries(args)
  const main = values.find(([name]) =>
    ['command', 'path', 'pattern', 'query', 'url'].includes(name),
  )
  if (main !== undefined) return clipped(String(main[1]), 300)
  return values.length === 0 ? '' : clipped(JSON.stringify(args), 300)
}
