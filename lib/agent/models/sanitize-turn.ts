/**
 * Pure: makes the turn that a model returned safe to log, to fold and to send back. Every turn
 * passes here before anything else looks at it, because neither a provider nor a host's own model
 * is trusted, and a value that breaks what comes later would break the run.
 *
 * 1. Everything is a plain copy of bounded depth and size.
 * 2. A call that cannot be used keeps its place and has an `error`, which the model gets as its
 *    result and can repair.
 * 3. Ids of calls are unique in the run and hold no secret, so redaction never changes them: a call
 *    and its result always match.
 *
 * @module
 */
import { plainCopy } from '../../internal/json.js'
import { storableText } from '../../internal/text.js'
import { ModelError } from '../errors.js'
import type { AssistantMessage, ModelTurn, StopReason, ToolCall } from '../model.js'
import { clip, headAndTail } from '../output.js'
import type { Usage } from '../usage.js'
import { objectOf, textOf } from './json-reader.js'
import { parseArguments } from './tool-arguments.js'
import { sanitizeUsage } from './usage.js'

/** Calls of one turn, beyond which none of them is taken. */
const MAX_CALLS = 128
/** Bytes of the text of a turn, and of its reasoning; the middle of a longer one is left out. */
const MAX_TEXT_BYTES = 1024 * 1024
/** Characters of a tool's name. */
const MAX_NAME = 256
/** Characters of what a model gets in place of a result. */
const MAX_ERROR = 4_000
/** Characters of the provider's own parts, as JSON. They are dropped when they have more. */
const MAX_PARTS = 8 * 1024 * 1024

const STOP_REASONS: ReadonlySet<unknown> = new Set<StopReason>([
  'end',
  'tool_calls',
  'length',
  'refusal',
  'content_filter',
  'other',
])

/** The part of a redactor that turns need. */
interface Redactor {
  finds(text: string): boolean
  text(text: string): string
}

/** What a turn has to fit. */
export interface TurnRules {
  /** The name of the model, for errors. */
  readonly model: string
  /** Ids that calls of the run have already. */
  readonly usedIds: ReadonlySet<string>
  readonly redactor: Redactor
}

/**
 * The turn that `returned` is.
 *
 * @throws {@link ModelError} when it is no turn, or, as the model's mistake, calls too many tools.
 */
export function sanitizeTurn(returned: unknown, rules: TurnRules): ModelTurn {
  try {
    return readTurn(returned, rules)
  } catch (error) {
    if (error instanceof ModelError) throw error
    // Getters and proxies of a host's model may throw anything.
    throw noTurn(rules, 'cannot be read')
  }
}

function readTurn(returned: unknown, rules: TurnRules): ModelTurn {
  const turn = recordOf(returned)
  const message = recordOf(turn?.['message'])
  if (turn === null || message === null) throw noTurn(rules, 'is not a turn')
  const usage = sanitizeUsage(objectOf(turn['usage']) as unknown as Usage)
  const { stop } = turn
  return {
    message: soundMessage(message, usage, rules),
    reasoning: soundText(turn['reasoning'], MAX_TEXT_BYTES),
    usage,
    stop: STOP_REASONS.has(stop) ? (stop as StopReason) : 'other',
  }
}

function noTurn({ model }: TurnRules, problem: string): ModelError {
  const message = `${model}: what the model returned ${problem}`
  return new ModelError('ERR_AGENT_MODEL_PROTOCOL', message, { retryable: false })
}

type Fields = Readonly<Record<string, unknown>>

function recordOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null ? (value as Fields) : null
}

function soundMessage(message: Fields, usage: Usage, rules: TurnRules): AssistantMessage {
  const given: readonly unknown[] = Array.isArray(message['calls']) ? message['calls'] : []
  if (given.length > MAX_CALLS) {
    const problem = `${rules.model}: it calls ${given.length} tools, and one answer may call`
    throw new ModelError('ERR_AGENT_MODEL', `${problem} ${MAX_CALLS} at most`, {
      retryable: false,
      modelMistake: true,
      usage,
    })
  }
  const ids = new CallIds(rules)
  const calls = Array.from(given, (call) => soundCall(recordOf(call) ?? {}, ids, rules.redactor))
  const text = soundText(message['text'], MAX_TEXT_BYTES)
  const parts = ids.haveChanged ? undefined : soundParts(message['parts'])
  return { role: 'assistant', text, calls, ...(parts !== undefined && { parts }) }
}

function soundCall(call: Fields, ids: CallIds, redactor: Redactor): ToolCall {
  const call_id = ids.take(call['call_id'])
  const name = soundText(call['tool'])
  const tool = clip(redactor.text(name), MAX_NAME)
  const given = call['error']
  const { args, error } = parseArguments(call['args'])
  const problem = typeof given === 'string' ? given : (nameProblem(name) ?? error)
  if (problem === null) return { call_id, tool, args }
  return { call_id, tool, args: {}, error: clip(redactor.text(soundText(problem)), MAX_ERROR) }
}

function nameProblem(name: string): string | null {
  if (name === '') return 'the call names no tool; call one by its name'
  return name.length > MAX_NAME ? `there is no tool with a name of ${name.length} characters` : null
}

/** The provider's own parts; without them its adapter rebuilds the turn from text and calls. */
function soundParts(given: unknown): AssistantMessage['parts'] {
  const parts = recordOf(given)
  const format = parts?.['format']
  if (parts === null || typeof format !== 'string' || format.length > MAX_NAME) return undefined
  const copy = plainCopy(parts['value'], MAX_PARTS, false)
  return copy.problem === null ? { format, value: copy.value } : undefined
}

/** A storable text, as the log will have it. */
function soundText(value: unknown, maxBytes = Infinity): string {
  return storableText(headAndTail(textOf(value), maxBytes))
}

/**
 * Gives calls their ids. The model's own id is kept when it is usable; another one is so short that
 * no text of a secret can be part of it.
 */
class CallIds {
  haveChanged = false
  readonly #rules: TurnRules
  readonly #taken = new Set<string>()

  constructor(rules: TurnRules) {
    this.#rules = rules
  }

  take(given: unknown): string {
    let id = textOf(given)
    if (!this.#isUsable(id)) {
      this.haveChanged = true
      let n = this.#rules.usedIds.size + this.#taken.size
      do id = `c${(++n).toString(36)}`
      while (this.#isTaken(id))
    }
    this.#taken.add(id)
    return id
  }

  #isUsable(id: string): boolean {
    // Names of Object.prototype would be found in objects that are used as maps.
    const isPlain = /^[\w.:-]{1,128}$/.test(id) && !(id in {})
    return isPlain && !this.#isTaken(id) && !this.#rules.redactor.finds(id)
  }

  #isTaken(id: string): boolean {
    return this.#taken.has(id) || this.#rules.usedIds.has(id)
  }
}
