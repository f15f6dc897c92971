/**
 * The prefixes of messages that a compaction treats specially. Only the engine writes the beginning
 * of a message to the model, so no other text can pass for one of these.
 *
 * @module
 */
import type { Message, UserMessage } from '../model.js'

/** The prefix of messages that were sent to a run, and of no others. */
const SENT = 'Message from the user:\n\n'

export const REVIEW = 'A human reviewed your work and says:\n\n'
export const CHECK = 'Goal check after iteration '
export const GOES_ON = 'The work goes on from here:'
export const SUMMARY = '[Summary of '

const REPEATED_CHECK = /^Goal check after iteration \d+: not achieved, and nothing was changed/

/** All that a model may take for the end of a line. */
export const LINE_END: RegExp = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/

/** Are these the words of a human, or of a program in the place of one? */
export function isOfPeople(message: Message): boolean {
  return begins(message, SENT) || begins(message, REVIEW)
}

/** Does it tell the result of a check? So does the first message, which always stays. */
export function isChecked(message: Message): boolean {
  return begins(message, CHECK) || begins(message, GOES_ON)
}

/** Does it say no more than that nothing was changed since the check before? */
export function isRepeatedCheck(message: Message): boolean {
  return message.role === 'user' && REPEATED_CHECK.test(message.text)
}

export function isSummary(message: Message): boolean {
  return begins(message, SUMMARY)
}

function begins(message: Message, words: string): boolean {
  return message.role === 'user' && message.text.startsWith(words)
}

/** A message that a human or a program sent to the run, as the model reads it. */
export function sentMessage(text: string): UserMessage {
  return { role: 'user', text: SENT + text }
}
