/** The descriptions of routes, from which the OpenAPI document is built. @module */
import type { JsonSchema } from '../../agent/index.js'

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'header'
  readonly description: string
  readonly schema: JsonSchema
  /** True when it may be given several times. */
  readonly repeated?: boolean
  /** True when it stands for all parameters whose name begins with its own and a dot. */
  readonly prefix?: boolean
}

/** A response; its media type defaults to JSON, and without a schema it has no content. */
export interface Answer {
  readonly description: string
  readonly schema?: JsonSchema
  readonly mediaType?: string
  /** Descriptions of response headers, by name. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Operation {
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  /** Schema of the JSON body; `optional` when it may be omitted. */
  readonly body?: { readonly schema: JsonSchema; readonly optional?: boolean }
  /** Successful responses by status; several where the media type is negotiated. */
  readonly answers: Readonly<Record<number, Answer | readonly Answer[]>>
  /** Statuses with problem details, besides those of any call. */
  readonly problems: readonly number[]
}
