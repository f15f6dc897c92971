import { createHash } from 'node:crypto'
import {
  defineTool,
  type Message,
  type ModelProvider,
  type ModelRequest,
  type Tool,
} from 'runwright/agent'
import { testProvider, type Said } from './engine.js'

/** Tokens that the model of {@link longProvider} takes in all. */
export const WINDOW = 12_000

/** A language model with a small window; `summary` answers when it is asked for one. */
export function longProvider(
  answer: (request: ModelRequest, call: number) => Said | Promise<Said>,
  summary: ((request: ModelRequest) => Said | Promise<Said>) | null,
  contextWindow: number | null = WINDOW,
): ModelProvider {
  const provider = testProvider((request, call) =>
    request.purpose === 'summary' ? summary!(request) : answer(request, call),
  )
  const create = (): ReturnType<ModelProvider['create']> => ({
    ...provider.create('m'),
    isLanguageModel: summary !== null,
    contextWindow,
  })
  return { ...provider, create }
}

/** A tool that only looks: its output follows from its arguments. */
export const lookTool: Tool = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: {
    type: 'object',
    properties: { at: { type: 'string' }, length: { type: 'integer' } },
    required: ['at'],
  },
  effect: 'read',
  execute: ({ at, length = 40 }) =>
    Promise.resolve({ output: `${at} `.repeat(length).slice(0, length), exitCode: 0 }),
})

/** A turn that says so many characters and looks once. */
export function looking(number: number, characters = 1_500, length = 40): Said {
  return {
    text: `turn ${number} ${'.'.repeat(characters)}`,
    calls: [{ tool: 'look', args: { at: `place ${number}`, length }, call_id: `call-${number}` }],
  }
}

/** Turns of the model in a conversation, those that a message stands for included. */
export function turnsOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => {
    if (message.role === 'assistant') return sum + 1
    return sum + (message.role === 'user' ? (message.stands_for ?? 0) : 0)
  }, 0)
}

/** The user messages with which a conversation tells of turns that are not there any more. */
export function standIns(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.role === 'user' && message.stands_for !== undefined ? [message.text] : [],
  )
}

export function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16)
}
