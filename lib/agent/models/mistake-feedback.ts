/**
 * The feedback to a model whose turn could not be read. The log stores it as text, so the replay
 * model recovers the provider's error from it: both directions stand here.
 *
 * @module
 */

const BEFORE = 'of your last answer: '
const AFTER = '\nCall a tool again'

/** What `model` is told before its next turn. */
export function mistakeFeedback(model: string, detail: string): string {
  return (
    `${model} could not make a tool call ${BEFORE}${detail}${AFTER}, with valid JSON arguments.`
  )
}

/** The detail in a feedback text; the whole text if an earlier version wrote it differently. */
export function mistakeIn(feedback: string): string {
  const from = feedback.indexOf(BEFORE)
  const to = feedback.lastIndexOf(AFTER)
  return from === -1 || to < from ? feedback : feedback.slice(from + BEFORE.length, to)
}
