/**
 * Storage of the browser, which may be full, or refused for this site: then a value is kept as long
 * as the page is open.
 */

/** @param {'localStorage' | 'sessionStorage'} kind */
function keptIn(kind) {
  /** What the browser did not take. @type {Map<string, string | null>} */
  const own = new Map()
  return {
    /** @param {string} name @returns {string | null} */
    get(name) {
      const value = own.get(name)
      if (value !== undefined) return value
      try {
        return globalThis[kind].getItem(name)
      } catch {
        return null
      }
    },
    /** @param {string} name @param {string | null} value null removes it */
    set(name, value) {
      own.delete(name)
      try {
        if (value === null) globalThis[kind].removeItem(name)
        else globalThis[kind].setItem(name, value)
      } catch {
        own.set(name, value)
      }
    },
  }
}

/** Of all tabs. */
export const local = keptIn('localStorage')
/** Of this tab. */
export const session = keptIn('sessionStorage')
