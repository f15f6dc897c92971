/** The key in a link to this page: `#key=…`, as the standalone server prints it. */
import { storedKey, storeKey } from './api.js'

const MARK = '#key='

/**
 * Moves the key from the address into this tab's storage. Browsers send the part after `#` to
 * nobody; without it, the history of the tab does not have the key either. A key that the tab has
 * stays until it is refused or forgotten: any page can open a link with any key.
 *
 * @returns {boolean} whether the address had one
 */
export function takeKey() {
  if (!location.hash.startsWith(MARK)) return false
  const key = location.hash.slice(MARK.length)
  history.replaceState(null, '', '#/')
  // Anything else could not be sent in a header.
  if (storedKey() === null && /^[\w.~+/-]+=*$/.test(key)) storeKey(key)
  return true
}
