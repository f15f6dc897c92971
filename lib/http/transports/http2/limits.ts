/** Limits of an HTTP/2 connection; `null` means none. */
export interface Http2Limits {
  /** How long it is kept without streams. */
  readonly idleMs: number | null
  /** How long the server may take to send its SETTINGS. */
  readonly settingsMs: number | null
  /** How long the server may be silent before it is sent a ping. */
  readonly pingMs: number | null
  /** Largest head of a response, in bytes. */
  readonly maxHeaderBytes: number
}
