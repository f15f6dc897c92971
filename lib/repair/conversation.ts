import type { JsonObject } from '../internal/json.js'
import type { AssistantMessage, Message, ToolCall, ToolMessage } from '../agent/index.js'

/** A tool call that has no id yet. */
export interface PlannedCall {
  readonly tool: string
  readonly args: JsonObject
}

/** The next turn of the repair engine. */
export interface PlannedTurn {
  readonly text: string
  readonly calls: readonly PlannedCall[]
  /** True when nothing is left to try. */
  readonly givesUp?: boolean
}

export interface CallResult {
  readonly output: string
  readonly exitCode: number
}

/** What the conversation holds between one turn and the next. */
export interface Reply {
  /** In the order of the calls; exit code -1 for a call without a result. */
  readonly results: readonly CallResult[]
  /** Messages of the engine or of a person. */
  readonly notes: readonly string[]
}

/** A program that yields turns and is resumed with the reply to each. */
export type Plan = Generator<PlannedTurn, never, Reply>

/**
 * Runs a plan against a conversation. The plan is a pure function of its replies, so replaying the
 * same messages leads to the same state; a session only caches the state that it has reached.
 */
export class Session {
  readonly #start: () => Plan
  #plan: Plan | null = null
  #turn: PlannedTurn | null = null
  #turns = 0
  /** The messages that the plan has received. */
  #fed: readonly Message[] = []

  constructor(start: () => Plan) {
    this.#start = start
  }

  /** The turn that follows these messages. */
  next(messages: readonly Message[]): AssistantMessage {
    if (this.#plan === null || !continues(this.#fed, messages)) this.#rewind()
    if (this.#turn === null) {
      this.#turn = this.#plan!.next().value
      // The messages before the first turn state the goal, which the plan already has.
      const first = messages.findIndex(({ role }) => role === 'assistant')
      this.#fed = messages.slice(0, first < 0 ? messages.length : first)
    }
    while (this.#fed.length < messages.length) this.#feed(messages)
    return this.#message()
  }

  #rewind(): void {
    this.#plan = this.#start()
    this.#turn = null
    this.#turns = 0
    this.#fed = []
  }

  /**
   * Passes one turn's reply to the plan: the messages from the first new one up to the next
   * assistant message.
   */
  #feed(messages: readonly Message[]): void {
    const from = this.#fed.length
    let to = from + 1
    while (to < messages.length && messages[to]!.role !== 'assistant') to++
    const said = messages.slice(from, to)
    const results = new Map<string, ToolMessage>()
    const planned = this.#message()
    const [recorded] = said
    // A different version of this program may have planned other calls, whose results do not apply.
    const isOurs = recorded?.role === 'assistant' && isSamePlan(recorded.calls, planned.calls)
    for (const message of said)
      if (message.role === 'tool' && isOurs) results.set(message.call_id, message)
    const calls = planned.calls.map(({ call_id }) => {
      const result = results.get(call_id)
      return { output: result?.output ?? '', exitCode: result?.exit_code ?? -1 }
    })
    const notes = said.flatMap((message) => (message.role === 'user' ? [message.text] : []))
    this.#turn = this.#plan!.next({ results: calls, notes }).value
    this.#turns++
    this.#fed = messages.slice(0, to)
  }

  #message(): AssistantMessage {
    const { text, calls, givesUp } = this.#turn!
    const named = calls.map(({ tool, args }, index): ToolCall => ({
      call_id: `repair-${this.#turns + 1}-${index + 1}`,
      tool,
      args,
    }))
    return {
      role: 'assistant',
      text,
      calls: named,
      parts: { format: 'repair', value: { turn: this.#turns + 1, gives_up: givesUp === true } },
    }
  }
}

/** Whether `messages` begins with `fed`; the same objects need no comparison of their contents. */
function continues(fed: readonly Message[], messages: readonly Message[]): boolean {
  return (
    fed.length <= messages.length &&
    fed.every((message, index) => isSame(message, messages[index]!))
  )
}

function isSame(a: Message, b: Message): boolean {
  if (a === b) return true
  if (a.role === 'tool')
    return (
      b.role === 'tool' &&
      a.call_id === b.call_id &&
      a.exit_code === b.exit_code &&
      a.output === b.output
    )
  if (a.role === 'user') return b.role === 'user' && a.text === b.text
  return b.role === 'assistant' && a.text === b.text && a.calls.length === b.calls.length
}

function isSamePlan(a: readonly ToolCall[], b: readonly ToolCall[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ call_id, tool, args }, index) => {
      const other = b[index]!
      return (
        call_id === other.call_id &&
        tool === other.tool &&
        (args === other.args || JSON.stringify(args) === JSON.stringify(other.args))
      )
    })
  )
}
