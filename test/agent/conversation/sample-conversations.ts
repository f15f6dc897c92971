import type { Message } from 'runwright/agent'
import { Conversation } from '../../../lib/agent/conversation/conversation.js'

export const size = (message: Message): number =>
  message.role === 'tool' ? message.output.length : message.text.length

/** The goal, then `turns` turns with one call and an output of `length` characters each. */
export function conversation(turns: number, length = 1_000): Message[] {
  const list: Message[] = [{ role: 'user', text: 'goal'.padEnd(100) }]
  for (let i = 0; i < turns; i++) {
    const call_id = `call_${i}`
    list.push({
      role: 'assistant',
      text: `turn ${i}`.padEnd(50),
      calls: [{ call_id, tool: 'bash', args: {} }],
    })
    list.push({ role: 'tool', call_id, tool: 'bash', output: 'x'.repeat(length), exit_code: 0 })
  }
  return list
}

export function total(
  messages: readonly Message[],
  measure: (message: Message) => number = size,
): number {
  return messages.reduce((sum, message) => sum + measure(message), 0)
}

export function filled(messages: readonly Message[]): Conversation {
  const conversation = new Conversation()
  for (const message of messages) conversation.add(message)
  return conversation
}
