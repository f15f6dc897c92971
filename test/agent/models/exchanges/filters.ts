/** Answers that a content filter stops. */
import { whole, type Dialect } from './dialects.js'
import type { Exchange, TurnFacts } from './table.js'

const CALLS = [{ id: 'call_aaaaaaaaa1', name: 'give_result', args: { total: 3 } }]
const HARM = 'This request was declined because it could enable cyber harm.'
const BLOCK_REASONS = [
  'SAFETY', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY', 'MODEL_ARMOR',
]
const FINISH_REASONS = [
  'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'MODEL_ARMOR', 'IMAGE_SAFETY',
]

/** The word with which a format says that a filter has stopped the answer. */
export const FILTERED: Readonly<Record<Dialect, string>> = {
  'openai-chat': 'content_filter', 'openai-responses': 'content_filter',
  anthropic: 'refusal', gemini: 'SAFETY',
}

const gives = (text: string, more: TurnFacts = {}): TurnFacts => ({
  text, calls: [], stop: 'content_filter', ...more,
})
/** Stopped before anything. */
const stopped = (dialect: Dialect, stop: string): Exchange => ({
  title: `a filter stops the answer before anything: ${stop}`, whole: whole(dialect, { stop }),
  gives: gives(''),
})
/** Stopped before anything, after a text, and after a call. */
const stoppedAnywhere = (dialect: Dialect): readonly Exchange[] => {
  const stop = FILTERED[dialect]
  return [
    stopped(dialect, stop),
    {
      title: 'a filter stops the answer after a text',
      whole: whole(dialect, { stop, text: 'Half' }), gives: gives('Half'),
    },
    {
      title: 'a filter stops the answer after a call, which is not made',
      whole: whole(dialect, { stop, calls: CALLS }), gives: gives(''),
    },
  ]
}

export const FILTERS: Readonly<Record<Dialect, readonly Exchange[]>> = {
  'openai-chat': [
    ...stoppedAnywhere('openai-chat'), stopped('openai-chat', 'guardrail_intervened'),
  ],
  'openai-responses': stoppedAnywhere('openai-responses'),
  anthropic: [
    ...stoppedAnywhere('anthropic'),
    {
      title: 'a filter stops the answer and says why',
      whole: {
        ...whole('anthropic', { stop: 'refusal' }),
        stop_details: { type: 'refusal', category: 'cyber', explanation: HARM },
      },
      gives: gives(HARM, { shown: '' }),
    },
  ],
  gemini: [
    ...stoppedAnywhere('gemini'),
    ...FINISH_REASONS.map((reason) => stopped('gemini', reason)),
    ...BLOCK_REASONS.map((blockReason): Exchange => ({
      title: `a filter stops the prompt: ${blockReason}`,
      whole: { promptFeedback: { blockReason }, usageMetadata: { promptTokenCount: 4 } },
      gives: gives(`(the prompt was refused: ${blockReason})`, { shown: '' }),
    })),
  ],
}
