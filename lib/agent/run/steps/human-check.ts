import { escapeInvisible } from '../../../internal/text.js'
import { isoTime } from '../../../internal/time.js'
import { uuidV7 } from '../../../internal/hash.js'
import type { GatedCall, GateKind, RecordDraft } from '../../events.js'
import type { Candidate } from '../../run-tree.js'
import type { CallState, RunState } from '../../log/run-state.js'
import { headAndTail } from '../../output.js'
import { redactor } from '../../redaction/redactor.js'
import type { CountedChanges } from '../../workspace/render-changes.js'
import { lockSummary } from './lock-summary.js'
import { withCheckpoint, type StepContext } from '../step-context.js'

/** Bytes of a gate's summary, without packages and the line that says how much was dropped. */
const SUMMARY_BYTES = 1_940
/** Characters of a reason, a path and a command in the summary. */
const REASON_CHARACTERS = 400
const PATH_CHARACTERS = 120
const COMMAND_CHARACTERS = 100
/** Files and commands that the summary names. */
const MAX_FILES = 20
const MAX_COMMANDS = 5

export interface NewGate {
  readonly kind: GateKind
  readonly calls: readonly GatedCall[]
  /** Of a gate of kind `choice`. */
  readonly candidates?: readonly Candidate[]
  /** First line of the summary; the state of the run follows. */
  readonly note?: string
  /** What changed since the last gate; null when that is not known. */
  readonly changes?: CountedChanges | null
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
      ...(gate.candidates !== undefined && { candidates: gate.candidates }),
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
  await withCheckpoint(context, 'gate', async (drafts, compare) => {
    const changes = await compare('gate')
    await log.append(drafts, (state) =>
      gateRecords(state, { kind: 'tool', calls: gated, changes }, context),
    )
  })
}

/** What each attempt has reached. */
function choiceOf(candidates: readonly Candidate[]): string {
  const achieved = candidates.filter(({ status }) => status === 'achieved').length
  const each = candidates.map(({ attempt, changes, model_name, reason, status }) => {
    const change =
      changes === null
        ? ''
        : `, ${changes.files} files +${changes.additions} -${changes.deletions}`
    const why = clip(reason.replaceAll('\n', ' '), PATH_CHARACTERS)
    return `Attempt ${attempt} (${clip(model_name, PATH_CHARACTERS)}${change}) ${status}: ${why}`
  })
  const first = `${achieved} of ${candidates.length} attempts achieved the goal: choose one.`
  return headAndTail(joined([first, ...each]), SUMMARY_BYTES)
}

function summaryOf(state: RunState, gate: NewGate): string {
  if (gate.candidates !== undefined) return choiceOf(gate.candidates)
  const { details } = state.head
  const { total_tokens, estimated_cost_usd, goal_reason } = details.final_state
  const files = changedFiles(state, gate)
  const cost = details.cost_known ? `, $${estimated_cost_usd.toFixed(4)}` : ', cost not known'
  const lines = [
    gate.note ?? '',
    gate.kind === 'tool'
      ? `Waiting to run: ${gate.calls.map(({ tool }) => clip(tool, PATH_CHARACTERS)).join(', ')}`
      : '',
    `Iteration ${details.iteration} of ${details.max_iterations}. ` +
      `Goal: ${clip(goal_reason.replaceAll('\n', ' '), REASON_CHARACTERS)}`,
    files,
    toolsOf(state),
    commandsOf(state),
    `Used so far: ${total_tokens} tokens${cost}.`,
  ]
  const end = gate.kind === 'iteration' ? 'If you approve, the next iteration begins.' : ''
  const text = headAndTail(joined(lines), SUMMARY_BYTES - end.length)
  // What was installed is shown whatever else there is to say.
  return joined([text, lockSummary(gate.changes?.locks ?? [], clip), end])
}

function joined(lines: readonly string[]): string {
  return lines.filter((line) => line !== '').join('\n')
}

/** The net change since the last gate; without checkpoints, what the tools have told. */
function changedFiles(state: RunState, { changes }: NewGate): string {
  if (changes != null) {
    const more = changes.files - changes.paths.length
    const named = changes.paths.map(({ path, additions, deletions }) =>
      fileLine(path, additions, deletions),
    )
    return named.length === 0
      ? 'No file changed since the last gate.'
      : `Files changed since the last gate: ${few(named, more)}`
  }
  // By hash, so that changes that were undone do not count.
  const changed = [...state.changedFiles].filter(([, { first, now }]) => first !== now)
  if (changed.length === 0) return state.hasUnseenChanges ? UNSEEN : 'No file changed.'
  const named = changed.map(([path, { added, removed }]) => fileLine(path, added, removed))
  return `Files changed: ${few(named, 0)}${state.hasUnseenChanges ? `\n${UNSEEN}` : ''}`
}

function fileLine(path: string, added: number, removed: number): string {
  const lines = [added > 0 ? `+${added}` : '', removed > 0 ? `-${removed}` : '']
  const counts = lines.filter((part) => part !== '').join(' ')
  return `${clip(path, PATH_CHARACTERS)}${counts === '' ? '' : ` (${counts})`}`
}

function few(files: readonly string[], more: number): string {
  const beyond = Math.max(0, files.length - MAX_FILES) + more
  return `${files.slice(0, MAX_FILES).join(', ')}${beyond > 0 ? ` and ${beyond} more` : ''}`
}

/** After a crash during a call, its changes are in the folder but not in the log. */
const UNSEEN = 'What calls of unknown outcome changed is not known: look into the folder.'

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
