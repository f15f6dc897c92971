import type { UserMessage } from '../model.js'

/** How such a message begins, and no other. */
export const SENT = 'Message from the user:\n\n'

/** A message that a human or a program sent to the run, as the model reads it. */
export function sentMessage(text: string): UserMessage {
  return { role: 'user', text: SENT + text }
}
