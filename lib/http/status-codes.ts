/** The registered reason phrase of `statusCode`, or "". */
export function reasonPhraseOf(statusCode: number): string {
  // Loaded lazily: node:http costs half this module's load time, and HTTP/1.1 sends phrases.
  return process.getBuiltinModule('node:http').STATUS_CODES[statusCode] ?? ''
}
