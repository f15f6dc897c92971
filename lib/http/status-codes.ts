/** The registered reason phrase of `statusCode`, or "". */
export function reasonPhraseOf(statusCode: number): string {
  // Loaded lazily: node:http costs half this module's load time, and HTTP/1.1 sends phrases.
  return process.getBuiltinModule('node:http').STATUS_CODES[statusCode] ?? ''
}

export function isInformational(statusCode: number): boolean {
  return statusCode >= 100 && statusCode <= 199
}

export function isSuccess(statusCode: number): boolean {
  return statusCode >= 200 && statusCode <= 299
}

export function isRedirect(statusCode: number): boolean {
  return statusCode >= 300 && statusCode <= 399
}

export function isClientError(statusCode: number): boolean {
  return statusCode >= 400 && statusCode <= 499
}

export function isServerError(statusCode: number): boolean {
  return statusCode >= 500 && statusCode <= 599
}
