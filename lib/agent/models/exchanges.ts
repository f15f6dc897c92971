/**
 * A conversation in the order that all providers require: each call followed by its result.
 *
 * @module
 */
import type {
  AssistantMessage, ImagePart, Message, ToolCall, ToolMessage,
} from '../model.js'

/** A user message, or a turn of the model with the results of its calls. */
export type Exchange =
  | { readonly kind: 'user'; readonly text: string; readonly images: readonly ImagePart[] }
  | {
      readonly kind: 'assistant'
      readonly message: AssistantMessage
      /** Exactly one for each call of the message, in the order of the calls. */
      readonly results: readonly ToolMessage[]
    }

/**
 * Groups messages so that the results of each turn follow it, in the order of its calls. A call
 * without a result gets a substitute, and a result without a call is dropped, because providers
 * refuse conversations that contain either. Messages with neither text nor calls are dropped too.
 */
export function exchanges(messages: readonly Message[]): Exchange[] {
  const list: Exchange[] = []
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!
    if (message.role === 'user') {
      const { images = [], text } = message
      if (text.trim() !== '' || images.length > 0) list.push({ kind: 'user', text, images })
    } else if (message.role === 'assistant') {
      const found = new Map<string, ToolMessage>()
      for (let next = messages[i + 1]; next?.role === 'tool'; next = messages[i + 1]) {
        found.set(next.call_id, next)
        i++
      }
      if (message.text === '' && message.calls.length === 0) continue
      const results = message.calls.map((call) => found.get(call.call_id) ?? missingResult(call))
      list.push({ kind: 'assistant', message, results })
    }
  }
  return list
}

function missingResult(call: ToolCall): ToolMessage {
  const output = 'no result was recorded for this call'
  return { role: 'tool', call_id: call.call_id, tool: call.tool, output, exit_code: -1 }
}

/** A result as the model reads it: the output, and the exit code unless it is 0. */
export function resultText(result: ToolMessage): string {
  if (result.exit_code === 0) return result.output === '' ? '(no output)' : result.output
  const end = result.output === '' || result.output.endsWith('\n') ? '' : '\n'
  return `${result.output}${end}[exit code ${result.exit_code}]`
}

/** An image as a URL that holds it (RFC 2397). */
export function dataUrl({ data, media_type }: ImagePart): string {
  return `data:${media_type};base64,${data}`
}

/** Of results whose images come after them, in a message of the user. */
export function imagesTitle({ call_id, tool }: ToolMessage): string {
  return `Images that ${tool} returned (${call_id}):`
}
