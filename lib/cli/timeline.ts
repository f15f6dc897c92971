/**
 * Pure: what the terminal shows of events.
 *
 * @module
 */
import type { AgentEvent, EventKind, JsonObject, NetChanges, RunDetails } from '../agent/index.js'
import type { Part, Style } from './print.js'

/** The tool that tries many patches in one call. */
const TRY = 'try_patches'
/** Columns of what a line is about. */
const LABEL = 11
/** Characters of a text of which a line shows the beginning. */
const BRIEF = 300
/** Characters and lines of what a model says when it gives up. */
const MAX_FAREWELL = 8_000
const MAX_FAREWELL_LINES = 60

/** An event of one kind. */
type EventOf<K extends EventKind> = Extract<AgentEvent, { kind: K }>

/** The lines of the kinds that are shown. */
const LINES: { readonly [K in EventKind]?: (event: EventOf<K>) => Part[] | null } = {
  step_start: ({ iteration, payload }) =>
    payload.node === 'plan' ? [['bold', `iteration ${iteration}`]] : null,
  model_turn: ({ payload }) =>
    payload.text.trim() === '' ? null : labelled('model', ['dim', brief(payload.text)]),
  // What it tries is said with what came of it, on one line.
  tool_call: ({ payload }) =>
    payload.tool === TRY ? null : labelled(payload.tool, callText(payload.args)),
  tool_result({ payload: { exit_code: code, output, tool } }) {
    if (tool === TRY && code === 0) return labelled(TRY, triedText(output))
    if (code === 0) return null
    return labelled(tool, ['yellow', `exit ${code}`], ['dim', lastLine(output)])
  },
  goal_check({ payload }) {
    const { achieved, reason, counts, duration_ms } = payload
    const tests = counts === null ? '' : `${counts.passed}/${counts.total} pass, `
    const verdict: Part = achieved ? ['green', 'met'] : ['red', 'not met']
    const facts = ` (${tests}${duration_ms} ms)${filesText(payload)}`
    return labelled('check', verdict, `: ${brief(reason)}`, facts)
  },
  setup_started: ({ payload }) => labelled('setup', ['dim', brief(payload.command)]),
  setup_ended({ payload: { duration_ms, exit_code: code, output } }) {
    if (code === 0) return labelled('setup', ['green', 'done'], ` (${duration_ms} ms)`)
    return labelled('setup', ['red', `exit ${code}`], ['dim', lastLine(output)])
  },
  human_check_required: ({ payload }) => labelled('gate', ['yellow', brief(payload.summary)]),
  human_check_response: ({ payload }) => labelled('answer', payload.decision),
  attempt_started: ({ payload }) =>
    labelled(`attempt ${payload.attempt}`, `begins with ${payload.model_name}`),
  attempt_ended: ({ payload }) =>
    labelled(`attempt ${payload.attempt}`, payload.status, `: ${brief(payload.reason)}`),
  attempt_chosen: ({ payload }) =>
    labelled(`attempt ${payload.attempt}`, 'is taken', `: ${brief(payload.why)}`),
  plan_updated({ payload: { steps } }) {
    const done = steps.filter(({ status }) => status === 'done').length
    return labelled('plan', `${done} of ${steps.length} steps are done`)
  },
  model_switched: ({ payload }) =>
    labelled('model', `${payload.to} goes on: `, ['dim', brief(payload.message)]),
  result: ({ payload: { problem } }) =>
    problem === null ? null : labelled('result', ['yellow', brief(problem)]),
  conversation_compacted: ({ payload }) =>
    labelled('summary', `stands in place of ${payload.turns} turns`),
  abort_requested: ({ payload }) =>
    labelled('abort', payload.why ?? 'the run ends; a second Ctrl-C leaves at once'),
  run_recovered: ({ payload }) => labelled('recovered', `attempt ${payload.attempt}`),
  error: ({ payload }) => labelled('error', ['red', brief(payload.message)]),
  log: ({ payload }) => labelled(payload.level, ['dim', brief(payload.message)]),
}

/** What a verdict says of files of the run. */
function filesText(
  { held_back, changed_tests, allowed }: EventOf<'goal_check'>['payload'],
): string {
  const lists = { 'held back': held_back, 'edited tests': changed_tests, allowed }
  const named = Object.entries(lists).filter(([, paths = []]) => paths.length > 0)
  return named.map(([name, paths = []]) => `; ${name}: ${brief(paths.join(', '))}`).join('')
}

/** The line of an event; null for events that are not shown. */
export function lineOf(event: AgentEvent): Part[] | null {
  const line = LINES[event.kind] as ((event: AgentEvent) => Part[] | null) | undefined
  return line?.(event) ?? null
}

/** All lines of what a model says when it gives up, which nobody should miss; none for others. */
export function farewellOf({ kind, payload }: AgentEvent): Part[][] {
  if (kind !== 'model_turn' || payload.stop !== 'refusal') return []
  const text = payload.text.slice(0, MAX_FAREWELL).trim()
  if (text === '') return []
  return text.split('\n', MAX_FAREWELL_LINES).map((line, at) =>
    at === 0 ? labelled('model', line) : [' '.repeat(LABEL + 2), line],
  )
}

function labelled(label: string, ...parts: readonly Part[]): Part[] {
  const style: Style = 'cyan'
  const joined = parts.flatMap((part, index): Part[] => {
    const isNext = index > 0 && typeof part !== 'string'
    return isNext ? [' ', part] : [part]
  })
  return ['  ', [style, `${brief(label)} `.padEnd(LABEL)], ...joined]
}

/** The beginning of a text, on one line. */
export function brief(text: string): string {
  const start = text.slice(0, 2 * BRIEF).trim().replaceAll(/\s+/g, ' ')
  return start.length > BRIEF ? `${start.slice(0, BRIEF)}…` : start
}

/** Commands say at the end what went wrong. */
function lastLine(output: string): string {
  return brief(output.slice(-2 * BRIEF).trimEnd().split('\n').at(-1) ?? '')
}

/** The most telling arguments of a call. */
function callText(args: JsonObject): string {
  const { path, command, old_text: before, new_text: after } = args
  const subject = path ?? command
  const edit = typeof before === 'string' && typeof after === 'string'
  const change = edit ? `: ${brief(before)} → ${brief(after)}` : ''
  if (typeof subject === 'string') return `${brief(subject)}${change}`
  return brief(Object.keys(args).length === 0 ? '' : JSON.stringify(args))
}

/** What came of the patches of one call. */
function triedText(output: string): string {
  if (output.startsWith('The command ran as it is')) return 'no patch: the command ran as it is'
  const [, tried, passed] = /^(\d+ patch(?:es)?) tried, (\d+) with exit code 0/.exec(output) ?? []
  return tried === undefined ? brief(output) : `${tried}: ${passed} passed`
}

/** How a run ended, and what it used. */
export function endLine(details: RunDetails): Part[] {
  const { status, iteration, final_state, usage, cost_known: isKnown } = details
  const style: Style = status === 'achieved' ? 'green' : status === 'failed' ? 'red' : 'yellow'
  const cost = isKnown ? `, $${final_state.estimated_cost_usd.toFixed(4)}` : ', cost not known'
  const tokens = `${final_state.total_tokens} tokens${cost}`
  const after = ` after ${iteration} iteration${iteration === 1 ? '' : 's'}`
  const reason = details.error?.message ?? final_state.goal_reason
  return [
    [['bold', style].flat() as Style, status],
    `${after}: ${brief(reason)}`,
    ['dim', ` (${usage.model_calls} model calls, ${tokens})`],
  ]
}

/** Characters of one line of a diff. */
const DIFF_LINE = 2_000

/** The lines of a net change, for as long as somebody reads them; `verdict`: of the same files. */
export function* diffLines(
  { changes, more, left_out, note }: NetChanges,
  verdict: Partial<Pick<RunDetails, 'changed_tests' | 'allowed'>> = {},
): Generator<Part[]> {
  if (note !== null) yield [['dim', note]]
  for (const change of changes) {
    const { path, old_path, status, additions, deletions, diff, binary, group } = change
    const from = old_path === null ? '' : `${old_path} → `
    const counts = binary ? ' (binary)' : ` (+${additions} -${deletions})`
    const marks = [
      group === 'held_back' && ' held back',
      verdict.changed_tests?.includes(path) === true && ' edited test',
      verdict.allowed?.includes(path) === true && ' allowed',
    ].flatMap((mark): Part[] => (mark === false ? [] : [['yellow', mark]]))
    yield [['bold', `${status} ${from}${path}`], ['dim', counts], ...marks]
    for (const line of linesOf(diff ?? '')) yield [diffPart(line)]
    if (diff === null) yield [['dim', '  its diff is too large, or its content is not stored']]
  }
  if (note === null && changes.length === 0) yield [['dim', 'no file has changed']]
  if (more > 0) yield [['dim', `and ${more} more files`]]
  for (const { reason, count, paths } of left_out) {
    if (reason === 'passed_over') continue
    yield [['dim', `not compared, ${reason}: ${count} (${brief(paths.slice(0, 20).join(', '))})`]]
  }
}

function diffPart(line: string): Part {
  const text = line.length > DIFF_LINE ? `${line.slice(0, DIFF_LINE)}…` : line
  if (line.startsWith('+')) return ['green', text]
  if (line.startsWith('-')) return ['red', text]
  return line.startsWith('@@') ? ['cyan', text] : text
}

/** The lines of a text, one after the other. */
export function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at)
    yield text.slice(at, end === -1 ? undefined : end)
    at = end === -1 ? text.length : end + 1
  }
}
