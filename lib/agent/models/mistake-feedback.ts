/**
 * The feedback to a model whose turn could not be read. The log stores it as text, so the replay
 * model recovers the provider's error from it: both directions stand here.
 *
 * @module
 */

/** What `model` is told before its next turn. */
export function mistakeFeedback(model: string, detail: string): string {
  return (
    `${model} could not make a tool call of your last answer: ${detail}\n` +
    'Call a tool again, with valid JSON arguments.'
  )
}

/** The detail in a feedback text; the whole text if an earlier version wrote it differently. */
export function mistakeIn(feedback: string): string {
  return /of your last answer: ([^]*)\nCall a tool again/.exec(feedback)?.[1] ?? feedback
}
