/**
 * How messages begin that a compaction treats in a way of their own. Only the engine writes the
 * first words of a message to the model, so nobody can pretend to be one of these.
 *
 * @module
 */
import type { Message } from '../model.js'
import { SENT } from './sent-message.js'

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
