/** A value that JSON can carry. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue }

/** A JSON object: what tools take as arguments. */
export type JsonObject = { readonly [name: string]: JsonValue }
