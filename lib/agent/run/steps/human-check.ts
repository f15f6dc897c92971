import { escapeInvisible } from '../../../internal/escape-invisible.js'
import { uuidV7 } from '../../../internal/uuid.js'
import type { GatedCall, RecordDraft } from '../../events.js'
import { isoTime } from '../../log/head.js'
import type { CallState, RunState } from '../../log/state.js'
import { headAndTail } from '../../output.js'
import { redactor } from '../../redaction/redactor.js'
import type { StepContext } from '../step-context.js'

/** Bytes of a gate's summary, without the line that says how much was dropped. */
const SUMMARY_BYTES = 1_940
/** Characters of a reason, a path and a command in the summary. */
const REASON_CHARACTERS = 400
const PATH_CHARACTERS = 120
const COMMAND_CHARACTERS = 100
/** Files and commands that the summary names. */
const MAX_FILES = 20
const MAX_COMMANDS = 5

export interface NewGate {
  readonly kind: 'iteration' | 'tool' | 'recovery'
  readonly calls: readonly GatedCall[]
  /** First line of the summary; the state of the run follows. */
  readonly note?: string
}

/** The records that open a gate: a node of its own after an iteration, else within a node. */
export function gateRecords(
  state: RunState,
  gate: NewGate,
  { clock, gateTimeoutMs }: Pick<StepContext, 'clock' | 'gateTimeoutMs'>,
): RecordDraft[] {
  const { iteration } = state.head.details
  const now = clock.now()
  const required: RecordDraft = {
    kind: 'human_check_required',
    iteration,
    payload: {
      iteration,
      summary: summaryOf(state, gate),
      gate_id: uuidV7(now),
      kind: gate.kind,
      deadline: gateTimeoutMs === null ? null : isoTime((now + gateTimeoutMs) / 1000),
      ...(gate.calls.length === 0 ? undefined : { calls: gate.calls }),
    },
  }
  if (gate.kind !== 'iteration') return [required]
  return [{ kind: 'step_start', iteration, payload: { node: 'human_check' } }, required]
}

/** Opens a gate for tool calls that need approval. */
export async function askForCalls(
  context: StepContext,
  calls: readonly CallState[],
): Promise<void> {
  const gated = calls.map(({ call, args }) => ({ call_id: call.call_id, tool: call.tool, args }))
  const { log } = context
  await log.append(gateRecords(log.state, { kind: 'tool', calls: gated }, context))
}

function summaryOf(state: RunState, gate: NewGate): string {
  const { details } = state.head
  const { total_tokens, estimated_cost_usd, goal_reason } = details.final_state
  // By hash, so that changes that were undone do not count.
  const changed = [...state.changedFiles].filter(([, { first, now }]) => first !== now)
  const files = changed.slice(0, MAX_FILES).map(([path, { added, removed }]) => {
    const lines = [added > 0 ? `+${added}` : '', removed > 0 ? `-${removed}` : ''].filter(
      (part) => part !== '',
    )
    return `${clip(path, PATH_CHARACTERS)}${lines.length === 0 ? '' : ` (${lines.join(' ')})`}`
  })
  const more = changed.length > MAX_FILES ? ` and ${changed.length - MAX_FILES} more` : ''
  const cost = details.cost_known ? `, $${estimated_cost_usd.toFixed(4)}` : ', cost not known'
  const lines = [
    gate.note ?? '',
    gate.kind === 'tool'
      ? `Waiting to run: ${gate.calls.map(({ tool }) => clip(tool, PATH_CHARACTERS)).join(', ')}`
      : '',
    `Iteration ${details.iteration} of ${details.max_iterations}. ` +
      `Goal: ${clip(goal_reason.replaceAll('\n', ' '), REASON_CHARACTERS)}`,
    files.length === 0 ? nothingSeen(state) : `Files changed: ${files.join(', ')}${more}`,
    files.length > 0 && state.hasUnseenChanges ? UNSEEN : '',
    toolsOf(state),
    commandsOf(state),
    `Used so far: ${total_tokens} tokens${cost}.`,
    gate.kind === 'iteration' ? 'If you approve, the next iteration begins.' : '',
  ]
  return headAndTail(lines.filter((line) => line !== '').join('\n'), SUMMARY_BYTES)
}

/** After a crash during a call, its changes are in the folder but not in the log. */
const UNSEEN = 'What calls of unknown outcome changed is not known: look into the folder.'

function nothingSeen({ hasUnseenChanges }: RunState): string {
  return hasUnseenChanges ? UNSEEN : 'No file changed.'
}

/** The last commands of this iteration with their exit codes. */
function commandsOf({ iterationTools }: RunState): string {
  const commands = iterationTools.flatMap(({ command, exitCode }) =>
    command === undefined ? [] : [`${clip(command, COMMAND_CHARACTERS)} (exit code ${exitCode})`],
  )
  return commands.length === 0 ? '' : `Commands: ${commands.slice(-MAX_COMMANDS).join('; ')}`
}

/**
 * The beginning of a text, on one line, cut between characters. What a human decides by is visible:
 * a line break ends a command or a comment, so it is not shown as a blank.
 */
function clip(text: string, characters: number): string {
  const blanks = redactor.text(text).replaceAll(/[ \t]+/g, ' ')
  const line = escapeInvisible(blanks).replaceAll('\n', '\\n')
  return line.length <= characters ? line : `${Array.from(line).slice(0, characters).join('')}…`
}

/** How often each tool was called in this iteration, and how often it failed. */
function toolsOf({ iterationTools }: RunState): string {
  const counts = new Map<string, { calls: number; failed: number }>()
  for (const { tool, exitCode } of iterationTools) {
    const count = counts.get(tool) ?? { calls: 0, failed: 0 }
    counts.set(tool, { calls: count.calls + 1, failed: count.failed + (exitCode === 0 ? 0 : 1) })
  }
  const parts = [...counts].map(([tool, { calls, failed }]) => {
    const failures = failed === 0 ? '' : ` (${failed} not with exit code 0)`
    return `${clip(tool, PATH_CHARACTERS)} ${calls === 1 ? 'once' : `${calls} times`}${failures}`
  })
  return parts.length === 0 ? '' : `Tools of this iteration: ${parts.join(', ')}`
}
