/** The key in a link to this page: `#key=…`, as the standalone server prints it. */
import { storeKey } from './api.js'

const MARK = '#key='

/**
 * Moves the key from the address into this tab's storage. Browsers send the part after `#` to
 * nobody; without it, the history of the tab does not have the key either.
 *
 * @returns {boolean} whether there was one
 */
export function takeKey() {
  if (!location.hash.startsWith(MARK)) return false
  const key = location.hash.slice(MARK.length)
  history.replaceState(null, '', '#/')
  // Anything else could not be sent in a header.
  if (/^[\w.~+/-]+=*$/.test(key)) storeKey(key)
  return true
}
