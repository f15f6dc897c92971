/** What a reader of a stream may ask for, in the query of both kinds of stream. @module */
import type { EventKind } from '../../agent/index.js'
import type { Parameter } from '../describe/operation.js'
import { readChoices, readInteger, readList, readText } from '../messages/query.js'
import { EVENT_KINDS } from '../describe/schemas.js'

/** The parameters of a stream. */
export const STREAM_PARAMETERS: readonly Parameter[] = [
  {
    name: 'after',
    in: 'query',
    description: 'only events with a greater seq; -1, for streams: only what is to come',
    schema: { type: 'integer', minimum: -1, default: 0 },
  },
  {
    name: 'kinds',
    in: 'query',
    description: 'only events of these kinds, with commas between',
    schema: { type: 'string' },
  },
  {
    name: 'deltas',
    in: 'query',
    description: 'for streams: 1 also sends what the model writes while it writes it',
    schema: { type: 'string', enum: ['0', '1'], default: '0' },
  },
]

/** What a reader of a stream asked for. */
export interface StreamWish {
  readonly after: number
  /** Undefined is all. */
  readonly kinds: ReadonlySet<EventKind> | undefined
  readonly deltas: boolean
}

/** Reads the query of a stream. @throws 422 */
export function readStreamWish(query: URLSearchParams): StreamWish {
  const after = readInteger(query, 'after', -1, Number.MAX_SAFE_INTEGER) ?? 0
  const kinds = readKinds(query)
  readText(query, 'deltas')
  const [deltas] = readChoices(query, 'deltas', ['0', '1'])
  return { after, kinds, deltas: deltas === '1' }
}

/** `kinds` of a stream or page; undefined is all. @throws 422 */
export function readKinds(query: URLSearchParams): ReadonlySet<EventKind> | undefined {
  return readList<EventKind>(query, 'kinds', EVENT_KINDS)
}
