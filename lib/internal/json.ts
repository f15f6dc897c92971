/** A value that JSON can represent. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue }

/** A JSON object, such as the arguments of a tool call. */
export type JsonObject = { readonly [name: string]: JsonValue }
