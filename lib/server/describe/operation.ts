/** What the route table says about each route, for the API description. @module */
import type { JsonSchema } from '../../agent/index.js'

/** A parameter in the query or a header. */
export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'header'
  readonly description: string
  readonly schema: JsonSchema
  /** The parameter may be repeated. */
  readonly repeated?: boolean
}

/** One answer of an operation. */
export interface Answer {
  readonly description: string
  readonly schema?: JsonSchema
  readonly mediaType?: string
  /** Response headers by name, with their meaning. */
  readonly headers?: Readonly<Record<string, string>>
}

/** How one route is described. */
export interface Operation {
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  /** Schema of the JSON body; `optional` when the body may be left out. */
  readonly body?: { readonly schema: JsonSchema; readonly optional?: boolean }
  /** Answers by status. */
  readonly answers: Readonly<Record<number, Answer | readonly Answer[]>>
  /** Statuses answered with a problem, besides those that any call may meet. */
  readonly problems: readonly number[]
}
