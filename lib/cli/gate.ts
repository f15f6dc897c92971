/**
 * A gate at the terminal: what waits for an answer, and the answer.
 *
 * @module
 */
import type { EventPayloads, NetChanges, ResumeAnswer } from '../agent/index.js'
import type { Dialogue } from './dialogue.js'
import type { Part } from './print.js'
import { diffLines, linesOf } from './timeline.js'

export type OpenGate = EventPayloads['human_check_required']

/** Characters of the arguments of one call. */
const MOST_CHARACTERS = 65_536
/** Lines of a diff. */
const MOST_LINES = 2_000

/** Can the gate be answered here? One that chooses among attempts has a page in the dashboard. */
export function isAnswerable({ kind }: OpenGate): boolean {
  return kind !== 'choice'
}

/**
 * Shows what waits, and asks until there is an answer; nothing approves by accident.
 *
 * @returns null when the input ends without one.
 */
export async function askAtGate(
  gate: OpenGate,
  changes: NetChanges | null,
  dialogue: Dialogue,
): Promise<ResumeAnswer | null> {
  for (const line of linesOf(gate.summary)) await dialogue.say(['yellow', '| '], line)
  for (const call of gate.calls ?? []) {
    await dialogue.say(['bold', call.tool])
    for (const line of argumentLines(call.args)) await dialogue.say('  ', line)
  }
  if (changes !== null) await showDiff(changes, dialogue)
  const canReject = gate.kind === 'tool'
  const reject = canReject ? ', r to reject' : ''
  const question = `a to approve${reject}, n for a note to the model, x to abort the run: `
  let feedback: string | undefined
  for (;;) {
    const typed = (await dialogue.ask(question))?.toLowerCase() ?? null
    if (typed === null) return null
    const answer = { gate_id: gate.gate_id, ...(feedback !== undefined && { feedback }) }
    if (typed === 'a' || typed === 'approve') return { ...answer, decision: 'approve' }
    if (typed === 'x' || typed === 'abort') return { ...answer, decision: 'abort' }
    if (canReject && (typed === 'r' || typed === 'reject')) return { ...answer, decision: 'reject' }
    if (typed !== 'n' && typed !== 'note') continue
    const note = await dialogue.ask('note: ')
    if (note === null) return null
    feedback = note
  }
}

async function showDiff(changes: NetChanges, dialogue: Dialogue): Promise<void> {
  let count = 0
  for (const line of diffLines(changes)) {
    count += 1
    if (count > MOST_LINES) {
      return await dialogue.say(['red', 'there is more, which is not shown here'])
    }
    await dialogue.say(...line)
  }
}

/** Each argument, with texts of several lines as they are. */
function* argumentLines(args: { readonly [name: string]: unknown }): Generator<Part> {
  let left = MOST_CHARACTERS
  for (const [name, value] of Object.entries(args)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const isLong = text.includes('\n')
    yield isLong ? `${name}:` : `${name}: ${text.slice(0, left)}`
    if (isLong) for (const line of linesOf(text.slice(0, left))) yield `  ${line}`
    left -= text.length
    if (left >= 0) continue
    // Nobody should approve what was not shown, without being told.
    yield ['red', `${-left} more characters of ${name} are not shown here`]
    left = 0
  }
}
