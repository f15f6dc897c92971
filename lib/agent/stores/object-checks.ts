const HASH = /^[0-9a-f]{64}$/

/** @throws TypeError for anything but a SHA-256 in hexadecimal, lower case. */
export function checkHash(hash: string): void {
  if (typeof hash === 'string' && HASH.test(hash)) return
  const got = JSON.stringify(hash)?.slice(0, 80)
  throw new TypeError(`a hash must have 64 hexadecimal digits in lower case, got ${got}`)
}

/** Checks the arguments of `ObjectStore.list`. @throws RangeError; TypeError for no hash. */
export function checkListing(after: string | null, limit: number): void {
  if (after !== null) checkHash(after)
  if (!(limit >= 1)) throw new RangeError(`limit must be 1 or more, got ${limit}`)
}
