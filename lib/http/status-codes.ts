/** The reason phrase that the registry has for `statusCode`, or "". */
export function reasonPhraseOf(statusCode: number): string {
  // Loading it takes as long as half of this module, and HTTP/1.1 brings its own phrases.
  return process.getBuiltinModule('node:http').STATUS_CODES[statusCode] ?? ''
}

/** 1xx. */
export function isInformational(statusCode: number): boolean {
  return statusCode >= 100 && statusCode <= 199
}

/** 2xx. */
export function isSuccess(statusCode: number): boolean {
  return statusCode >= 200 && statusCode <= 299
}

/** 3xx. */
export function isRedirect(statusCode: number): boolean {
  return statusCode >= 300 && statusCode <= 399
}

/** 4xx. */
export function isClientError(statusCode: number): boolean {
  return statusCode >= 400 && statusCode <= 499
}

/** 5xx. */
export function isServerError(statusCode: number): boolean {
  return statusCode >= 500 && statusCode <= 599
}
