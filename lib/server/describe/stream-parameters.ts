/** The query parameters of both kinds of stream. @module */
import type { EventKind } from '../../agent/index.js'
import type { Parameter } from './operation.js'
import { EVENT_KINDS } from './event-schemas.js'
import { readChoices, readInteger, readList } from '../messages/query.js'

/** Their descriptions, the same in OpenAPI and AsyncAPI. */
export const STREAM_PARAMETERS: readonly Parameter[] = [
  {
    name: 'after',
    in: 'query',
    description: 'only events with a greater seq; streams: -1 sends new events only',
    schema: { type: 'integer', minimum: -1, default: 0 },
  },
  {
    name: 'kinds',
    in: 'query',
    description: 'only events of these kinds, separated by commas',
    schema: { type: 'string' },
  },
  {
    name: 'deltas',
    in: 'query',
    description: 'streams: 1 also sends the model\'s text while it is being generated',
    schema: { type: 'string', enum: ['0', '1'], default: '0' },
  },
]

/** The parsed query of a stream. */
export interface StreamQuery {
  readonly after: number
  /** Undefined is all. */
  readonly kinds: ReadonlySet<EventKind> | undefined
  readonly deltas: boolean
}

/** Reads the query of a stream, whose names were checked. @throws 422 */
export function readStreamQuery(query: URLSearchParams): StreamQuery {
  const after = readInteger(query, 'after', -1, Number.MAX_SAFE_INTEGER) ?? 0
  const kinds = readKinds(query)
  const [deltas] = readChoices(query, 'deltas', ['0', '1'])
  return { after, kinds, deltas: deltas === '1' }
}

/** Reads `kinds` of a stream or page; undefined is all. @throws 422 */
export function readKinds(query: URLSearchParams): ReadonlySet<EventKind> | undefined {
  return readList<EventKind>(query, 'kinds', EVENT_KINDS)
}
