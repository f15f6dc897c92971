/**
 * Source of a module that makes the functions of node:assert read-only in the process that loads
 * it, so that code under test cannot replace `assert.equal` by a function that never fails. Other
 * assertion libraries, and the runner's own objects, can still be patched; canaries watch them.
 */
export const ASSERT_LOCK: string = String.raw`
'use strict'
const assert = require('node:assert')
const lock = (object) => {
  for (const name of Object.keys(object)) {
    const { value } = Object.getOwnPropertyDescriptor(object, name)
    if (typeof value === 'function') {
      Object.defineProperty(object, name, { value, writable: false, configurable: false })
    }
  }
}
lock(assert)
lock(assert.strict)
exports.lock = lock
`
