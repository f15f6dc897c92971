const HASH = /^[0-9a-f]{64}$/

/** @throws TypeError for anything but a SHA-256 in hexadecimal, lower case. */
export function checkHash(hash: string): void {
  if (typeof hash === 'string' && HASH.test(hash)) return
  const got = JSON.stringify(hash)?.slice(0, 80)
  throw new TypeError(`a hash must have 64 hexadecimal digits in lower case, got ${got}`)
}

/** @throws RangeError when a page could hold nothing. */
export function checkLimit(limit: number): void {
  if (!(limit >= 1)) throw new RangeError(`limit must be 1 or more, got ${limit}`)
}
