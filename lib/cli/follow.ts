/**
 * One run, and those that it starts, from their first event to the end: shown as they come, with
 * gates answered at the terminal.
 *
 * @module
 */
import {
  type AgentEvent, type EventPayloads, type NetChanges, type ResumeAnswer, type RunDetails,
  type RunEngine, RunStateError,
} from '../agent/index.js'
import { escapeInvisibleJson } from '../internal/text.js'
import type { Dialogue } from './dialogue.js'
import type { Part } from './print.js'
import type { Terminal } from './terminal.js'
import { brief, diffLines, farewellOf, lineOf, linesOf } from './timeline.js'

/** A gate that nobody can answer here. */
export interface UnansweredGate {
  /** The run that waits: the one that is followed, or one that it has started. */
  readonly waiting: string
  /** The run that is followed. */
  readonly details: RunDetails
}

export class Follower {
  /** The first gate that nobody could answer; then the engine is closed, and the run waits. */
  unanswered: UnansweredGate | null = null
  readonly #engine: RunEngine
  readonly #terminal: Terminal
  readonly #json: boolean
  readonly #progress = new Progress()
  /** Of runs that the first one starts: what their lines begin with. */
  readonly #names = new Map<string, string>()
  #runId = ''
  #failure: { readonly error: unknown } | null = null

  constructor(engine: RunEngine, terminal: Terminal, json: boolean) {
    this.#engine = engine
    this.#terminal = terminal
    this.#json = json
  }

  /** Resolves when the run has ended, or when nobody can answer its gate. */
  async follow({ run_id, max_iterations }: RunDetails): Promise<void> {
    this.#runId = run_id
    this.#progress.most = max_iterations
    const draw = (): void => this.#terminal.progress(...this.#progress.parts())
    // Time passes, even if nothing else happens.
    const timer = setInterval(draw, 1_000)
    const children: Promise<void>[] = []
    const stop = this.#engine.observe(({ details, events }) => {
      for (const { kind, payload } of events) {
        if (kind === 'attempt_started') this.#names.set(payload.run_id, `#${payload.attempt}`)
        // The engine drives no runs but this one and those that it starts.
        if (kind === 'run_created') children.push(this.#followOrFail(details.run_id))
      }
    })
    try {
      await this.#followOrFail(run_id)
      await Promise.all(children)
    } finally {
      stop()
      clearInterval(timer)
      this.#terminal.progress()
    }
    if (this.#failure !== null) throw this.#failure.error
  }

  /** What fails ends everything: the other runs may wait for what it would have done. */
  async #followOrFail(runId: string): Promise<void> {
    try {
      await this.#follow(runId)
    } catch (error) {
      this.#failure ??= { error }
      this.#close()
    }
  }

  async #follow(runId: string): Promise<void> {
    const name = this.#names.get(runId) ?? ''
    for await (const batch of await this.#engine.subscribe(runId)) {
      for (const { json } of batch) {
        const event = JSON.parse(json) as AgentEvent
        await this.#show(event, json, name)
        if (event.kind === 'human_check_required') await this.#answer(runId, event.payload)
      }
    }
  }

  /** Ends all subscriptions; the caller that has opened the engine waits for that. */
  #close(): void {
    this.#engine.close().catch(() => undefined)
  }

  async #show(event: AgentEvent, json: string, name: string): Promise<void> {
    if (this.#json) return await this.#terminal.write(`${escapeInvisibleJson(json)}\n`)
    const line = lineOf(event)
    const farewell = farewellOf(event)
    this.#progress.note(event)
    const named = (parts: Part[]): Part[] => (name === '' ? parts : [['magenta', name], ...parts])
    for (const each of farewell) await this.#terminal.line(named(each), true)
    if (line !== null && farewell.length === 0) await this.#terminal.line(named(line))
    this.#terminal.progress(...this.#progress.parts())
  }

  async #answer(runId: string, gate: OpenGate): Promise<void> {
    const answer = await this.#terminal.converse(async (dialogue) => {
      if (this.unanswered !== null || !this.#terminal.canAsk || !isAnswerable(gate)) return null
      const changes = gate.kind === 'iteration' ? this.#engine.workspaces.changes(runId) : null
      return await askAtGate(gate, await changes, dialogue)
    })
    if (answer === null) return await this.#leave(runId)
    try {
      await this.#engine.resume(runId, answer)
    } catch (error) {
      // Aborted meanwhile, which its events say.
      if (!(error instanceof RunStateError)) throw error
    }
  }

  /** The run stays at its gate, unless the question ended because the run is being aborted. */
  async #leave(waiting: string): Promise<void> {
    if (this.#terminal.isStopped || this.unanswered !== null) return
    this.unanswered = { waiting, details: await this.#engine.get(this.#runId) }
    this.#close()
  }
}

/** What the progress line tells: where the run is, at what, and for how long. */
class Progress {
  most = 0
  #iteration = 0
  #what = 'starts'
  #since = performance.now()
  #tokens = 0

  note({ kind, payload, iteration }: AgentEvent): void {
    this.#iteration = Math.max(this.#iteration, iteration)
    if (kind === 'llm_usage') this.#tokens += payload.input_tokens + payload.output_tokens
    const what = this.#doing(kind, payload)
    if (what === null) return
    this.#what = what
    this.#since = performance.now()
  }

  parts(): Part[] {
    const seconds = Math.floor((performance.now() - this.#since) / 1_000)
    const where = `iteration ${this.#iteration}/${this.most}`
    return [['dim', `${where} · ${this.#tokens} tokens · ${seconds} s · ${this.#what}`]]
  }

  #doing(kind: AgentEvent['kind'], payload: AgentEvent['payload']): string | null {
    if (kind === 'tool_call') {
      const { tool, args } = payload as { tool: string; args: { command?: unknown } }
      return typeof args.command === 'string' ? `${tool} ${brief(args.command)}` : tool
    }
    if (kind === 'tool_result' || kind === 'goal_check') return 'model'
    if (kind === 'step_start') return (payload as { node: string }).node
    return kind === 'human_check_required' ? 'gate' : null
  }
}

/**
 * A gate at the terminal: what waits for an answer, and the answer.
 */

export type OpenGate = EventPayloads['human_check_required']

/** Characters of the arguments of one call. */
const MOST_CHARACTERS = 65_536
/** Lines of a diff. */
const MOST_LINES = 2_000

/** Can the gate be answered here? One that chooses among attempts has a page in the dashboard. */
function isAnswerable({ kind }: OpenGate): boolean {
  return kind !== 'choice'
}

/**
 * Shows what waits, and asks until there is an answer; nothing approves by accident.
 *
 * @returns null when the input ends without one.
 */
async function askAtGate(
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
