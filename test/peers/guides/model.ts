/**
 * A stand-in for the APIs of OpenAI and Anthropic: its model looks at `range.js` in the first
 * iteration of a run, and repairs it in the next one, so that a gate may lie between. `script` puts
 * other calls in front.
 */
import { FIXED_RANGE } from '../../helpers/plant-bugs.js'

/** A call of a tool. */
export interface Call {
  readonly tool: string
  readonly args: object
}

interface Message {
  readonly role: string
  readonly content?: unknown
  readonly tool_calls?: readonly unknown[]
}

/** What both formats have in common of a request. */
export interface ModelRequest {
  readonly messages: readonly Message[]
  readonly tools?: readonly unknown[]
  readonly tool_choice?: unknown
  readonly response_format?: unknown
}

const INVOICE = { number: '2026-118', total: 249.9 }
const INVOICE_CALL: Call = { tool: 'give_result', args: INVOICE }

const hasPart = ({ content }: Message, type: string): boolean =>
  Array.isArray(content) && content.some((part: { type?: string }) => part.type === type)

/** The calls of the next turn; none is the end of an iteration. */
export function nextCalls(request: ModelRequest, script: Call[][]): readonly Call[] {
  const { messages } = request
  if (JSON.stringify(request.tool_choice ?? '').includes('give_result')) return [INVOICE_CALL]
  const planned = script.shift()
  if (planned !== undefined) return planned
  const last = messages.at(-1)!
  if (last.role === 'tool' || hasPart(last, 'tool_result')) return []
  if (JSON.stringify(messages).includes('extract the invoice')) return []
  const said = JSON.stringify(messages.filter(({ role }) => role === 'assistant'))
  const path = 'range.js'
  return said.includes('"name":"read_file"')
    ? [{ tool: 'write_file', args: { path, content: FIXED_RANGE } }]
    : [{ tool: 'read_file', args: { path } }]
}

/** The answer of Chat Completions. */
export function chatCompletion(request: ModelRequest, script: Call[][]): object {
  const calls = nextCalls(request, script)
  const tool_calls = calls.map(({ tool, args }, index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name: tool, arguments: JSON.stringify(args) },
  }))
  const content =
    request.response_format === undefined ? 'I go on.' : JSON.stringify(INVOICE)
  const message = { role: 'assistant', content, ...(calls.length > 0 && { tool_calls }) }
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop'
  return {
    id: '1',
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  }
}

/** The answer of Anthropic's Messages. */
export function anthropicMessage(request: ModelRequest, script: Call[][]): object {
  const calls = nextCalls(request, script)
  const uses = calls.map(({ tool, args }, index) => ({
    type: 'tool_use',
    id: `toolu_${index}`,
    name: tool,
    input: args,
  }))
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [{ type: 'text', text: 'I go on.' }, ...uses],
    stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
    usage: { input_tokens: 7, output_tokens: 3 },
  }
}
