/** Parts of answers of OpenAI's Chat Completions, whole and streamed. */
import type { JsonObject } from 'runwright/agent'

/** The last line of a stream. */
export const DONE = 'data: [DONE]'
/** An event of a stream. */
export const delta = (fields: object, more: object = {}): object => ({
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: fields, logprobs: null, finish_reason: null, ...more }],
})
export const text = (content: unknown): object => delta({ content })
export const callDelta = (...tool_calls: unknown[]): object => delta({ tool_calls })
export const finish = (finish_reason: string): object => delta({}, { finish_reason })
export const counts = (prompt: number, completion: number, more: object = {}): object => ({
  choices: [],
  usage: {
    prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion,
    ...more,
  },
})

/** A call, or a piece of one; what is undefined is left out. */
export const call = (
  index: number | undefined,
  id: string | null | undefined,
  name: string | null | undefined,
  args?: unknown,
  more: object = {},
): JsonObject =>
  JSON.parse(
    JSON.stringify({ index, id, type: 'function', function: { name, arguments: args }, ...more }),
  ) as JsonObject

/** A whole answer. */
export const answer = (message: object, finish_reason = 'stop', usage: object = {}): JsonObject =>
  ({ choices: [{ index: 0, message, finish_reason }], usage }) as JsonObject
export const ID = 'call_123456789'
/** A whole answer with one call. */
export const calling = (args: unknown, fields: object = {}): JsonObject =>
  answer({
    role: 'assistant', content: null, ...fields, tool_calls: [call(undefined, ID, 'bash', args)],
  })
/** The signature of a call, which must go back with it. */
export const SIGNED = { extra_content: { google: { thought_signature: 'U0NS' } } }
