/** The table of exchanges, of all providers. */
import { ANTHROPIC } from './anthropic.js'
import { DIALECTS, STREAMS, whole, type Dialect } from './dialects.js'
import { FILTERS } from './filters.js'
import { GEMINI } from './gemini.js'
import { CHAT } from './openai-chat.js'
import { RESPONSES } from './openai-responses.js'
import { RECORDINGS } from './recordings.js'
import { REFUSALS } from './refusals.js'
import type { Exchange } from './table.js'

const BY_DIALECT: Readonly<Record<Dialect, readonly Exchange[]>> = {
  'openai-chat': CHAT, 'openai-responses': RESPONSES, anthropic: ANTHROPIC, gemini: GEMINI,
}

/** Pieces that say nothing, and what no provider sends yet. */
const NOISE = [
  'data: ', 'data:  ', 'data: {"type":"ping"}', 'data: {"type":"keepalive","sequence_number":3}',
  'data: {"new":{"field":[]}}',
]

/** A greeting between such pieces. */
function noisy(dialect: Dialect): Exchange {
  const [first, ...rest] = STREAMS[dialect](whole(dialect, { text: 'Hi, you' }))
    .replaceAll(/,?"usage(?:Metadata)?":\{.*?\}|\r/g, '')
    .trimEnd()
    .split('\n\n')
  return {
    title: 'empty pieces, keep-alives, unknown events and fields, and no counts',
    stream: [...NOISE, first, ...rest.flatMap((event) => [...NOISE, event])],
    gives: { text: 'Hi, you', stop: 'end', usage: [0, 0, 0, 0] },
  }
}

export const EXCHANGES: readonly (readonly [Dialect, Exchange])[] = [
  ...DIALECTS.flatMap((dialect) =>
    [...BY_DIALECT[dialect], ...FILTERS[dialect], ...REFUSALS[dialect], noisy(dialect)].map(
      (row: Exchange) => [dialect, row] as const,
    ),
  ),
  ...RECORDINGS.map((row) => [row.dialect, row] as const),
]
