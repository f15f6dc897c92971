import type { UserMessage } from '../model.js'

/** A message that a human or a program sent to the run, as the model reads it. */
export function sentMessage(text: string): UserMessage {
  return { role: 'user', text: `Message from the user:\n\n${text}` }
}
